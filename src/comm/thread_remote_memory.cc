#include "comm/thread_remote_memory.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

namespace forebay {
namespace {

class CopyingReader final : public RemoteReader {
 public:
  explicit CopyingReader(std::vector<ThreadRemoteMemory::Part> parts) : parts_(std::move(parts)) {}

  void start(std::span<const RemotePiece> pieces) override {
    for (const RemotePiece& piece : pieces) {
      const auto& part = *parts_[static_cast<std::size_t>(piece.owner)];
      if (piece.to.empty()) continue;
      std::memcpy(piece.to.data(), part.data() + piece.offset, piece.to.size());
    }
  }
  void finish(const WaitPolicy& policy) override {
    if (policy.interrupt) policy.interrupt();
  }
  bool serve() override { return false; }
  bool quiet() const override { return true; }

 private:
  std::vector<ThreadRemoteMemory::Part> parts_;
};

}  // namespace

std::span<const std::byte> ThreadRemoteMemory::direct(int rank) const {
  const auto place = static_cast<std::size_t>(rank);
  return near_[place] ? std::span<const std::byte>(*parts_[place]) : std::span<const std::byte>();
}

bool ThreadRemoteMemory::several_nodes() const {
  return std::ranges::find(near_, false) != near_.end();
}

std::unique_ptr<RemoteReader> ThreadRemoteMemory::make_reader(Transport, std::string&) {
  return std::make_unique<CopyingReader>(parts_);
}

}  // namespace forebay
