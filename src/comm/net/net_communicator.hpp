// The Communicator of ranks that are connected by TCP alone.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "comm/net/group.hpp"
#include "comm/waiting.hpp"
#include "forebay/communicator.hpp"

namespace forebay::net {

class NetCommunicator final : public Communicator {
 public:
  NetCommunicator(std::shared_ptr<Group> group, WaitPolicy policy)
      : group_(std::move(group)), policy_(std::move(policy)) {}

  int rank() const override { return group_->rank(); }
  int size() const override { return group_->size(); }
  void barrier() override;
  void broadcast(std::span<std::byte> data, int root) override;
  void all_gather(std::span<const std::byte> mine, std::span<std::byte> all) override;
  std::vector<std::vector<std::byte>> gather(std::span<const std::byte> mine, int root) override;
  void all_reduce_sum(std::span<float> values) override;
  std::shared_ptr<Communicator> split(int color, int key) override;
  std::shared_ptr<Communicator> split_by_node() override;
  std::unique_ptr<SharedMemory> share(std::size_t bytes, SharedMemoryKind kind) override;
  std::unique_ptr<SharedCounter> share_counter() override;
  std::unique_ptr<RemoteMemory> expose(Communicator& node, std::size_t bytes,
                                       SharedMemoryKind kind) override;
  std::unique_ptr<CommonFile> open_together(const std::string& path) override;
  std::unique_ptr<NonblockingCollectives> nonblocking() override;
  void send_notice(int to, std::span<const std::byte> message) override;
  std::optional<std::vector<std::byte>> poll_notice() override;
  void send(int to, std::span<const std::byte> message) override;
  std::optional<std::vector<std::byte>> try_receive(int from) override;
  void check_ranks() override { group_->check(); }
  bool concurrent() const override { return true; }
  void set_timeout(std::chrono::milliseconds timeout) override { policy_.timeout = timeout; }
  std::chrono::milliseconds timeout() const override { return policy_.timeout; }
  void set_interrupt(std::function<void()> interrupt) override {
    policy_.interrupt = std::move(interrupt);
  }

 private:
  /// The ranks of one color, ordered by key.
  std::shared_ptr<Group> part(int color, int key);
  std::shared_ptr<Group> own() { return part(0, rank()); }

  std::shared_ptr<Group> group_;
  WaitPolicy policy_;
};

/// Memory that all ranks may read: see net_remote_memory.cc. Collective over `comm`, which is of
/// the ranks of `group`; `node` is this rank's part of it.
std::unique_ptr<RemoteMemory> net_remote_memory(std::shared_ptr<Group> group, Communicator& comm,
                                                Communicator& node, std::size_t bytes);
/// Operations that nobody waits for; `group` is theirs alone.
std::unique_ptr<NonblockingCollectives> net_nonblocking(std::shared_ptr<Group> group);

}  // namespace forebay::net
