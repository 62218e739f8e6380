// RemoteMemory for ranks as threads: all of it lies in this process, but other nodes' only a reader
// may see.
#pragma once

#include <memory>
#include <mutex>
#include <vector>

#include "comm/remote_memory.hpp"

namespace forebay {

class ThreadRemoteMemory final : public RemoteMemory {
 public:
  using Part = std::shared_ptr<std::vector<std::byte>>;

  /// `parts`: of all ranks. `near`: which ranks are on this node.
  ThreadRemoteMemory(int rank, std::vector<Part> parts, std::vector<bool> near)
      : rank_(rank), parts_(std::move(parts)), near_(std::move(near)) {}

  std::span<std::byte> mine() const override { return *parts_[static_cast<std::size_t>(rank_)]; }
  std::span<const std::byte> direct(int rank) const override;
  std::uint64_t bytes(int rank) const override {
    return parts_[static_cast<std::size_t>(rank)]->size();
  }
  bool several_nodes() const override;
  void publish() override {}
  std::unique_ptr<RemoteReader> make_reader(Transport transport, std::string& why) override;
  std::string describe() const override { return "memory of this process"; }

 private:
  int rank_;
  std::vector<Part> parts_;
  std::vector<bool> near_;
};

}  // namespace forebay
