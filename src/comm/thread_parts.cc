#include "comm/thread_parts.hpp"

#include <algorithm>
#include <cstring>
#include <exception>
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

// As with MPI, an error keeps nobody from what the others wait for.
void ThreadFile::read_all(std::span<const FilePiece> pieces) {
  std::exception_ptr failed;
  try {
    for (const FilePiece& piece : pieces) read(piece.offset, piece.into);
  } catch (...) {
    failed = std::current_exception();
  }
  comm_->barrier();
  if (failed) std::rethrow_exception(failed);
}

std::uint64_t ThreadFile::read(std::uint64_t offset, std::span<std::byte> into) {
  const std::uint64_t size = file_->size();
  const std::uint64_t count = std::min<std::uint64_t>(into.size(), size - std::min(offset, size));
  if (count > 0) file_->read(offset, into.first(count));
  return count;
}

}  // namespace forebay
