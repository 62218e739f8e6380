// Ranks as threads of one process: the same interface, no MPI. One ThreadWorld is one group of
// ranks; every collective call is a meeting in which each rank shows a pointer to the others.
#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "comm/waiting.hpp"
#include "forebay/communicator.hpp"

namespace forebay {

class ThreadWorld {
 public:
  /// `ended` tells whether a rank of the run has ended with an error; waits then fail.
  ThreadWorld(int ranks, std::function<bool()> ended);

  int size() const { return static_cast<int>(shown_.size()); }
  const std::function<bool()>& ended() const { return ended_; }

  /// All ranks show `mine`; `look` sees what all have shown, ordered by rank, and no rank goes on
  /// before every rank has looked. A rank may give up until all have come; what it has shown is
  /// then looked at by no one.
  void meet(int rank, const void* mine, const WaitPolicy& policy,
            const std::function<void(const std::vector<const void*>&)>& look);

  void notify(int to, std::vector<std::byte> message);
  std::optional<std::vector<std::byte>> notice(int rank);
  void send(int from, int to, std::vector<std::byte> message);
  std::optional<std::vector<std::byte>> receive(int from, int to);

 private:
  void wait_for_all(const WaitPolicy& policy);
  void wait_until_all_have_looked();

  std::function<bool()> ended_;
  std::mutex mutex_;
  std::condition_variable changed_;
  int here_ = 0;
  std::uint64_t meetings_ = 0;  ///< in which all have come
  int looked_ = 0;
  std::uint64_t partings_ = 0;  ///< in which all have looked
  std::vector<const void*> shown_;
  using Messages = std::deque<std::vector<std::byte>>;
  static std::optional<std::vector<std::byte>> take(Messages& messages);

  std::vector<Messages> notices_;                     ///< by receiver
  std::map<std::pair<int, int>, Messages> messages_;  ///< by sender and receiver
};

class ThreadCommunicator final : public Communicator {
 public:
  /// `ranks_per_node` as in run_ranks.
  ThreadCommunicator(std::shared_ptr<ThreadWorld> world, int rank, int ranks_per_node);

  int rank() const override { return rank_; }
  int size() const override { return world_->size(); }
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
  bool concurrent() const override { return true; }
  void set_timeout(std::chrono::milliseconds timeout) override { policy_.timeout = timeout; }
  void set_interrupt(std::function<void()> interrupt) override {
    policy_.interrupt = std::move(interrupt);
  }

 private:
  /// What rank `from` has given.
  template <typename T>
  std::shared_ptr<T> hand_around(const std::shared_ptr<T>& mine, int from);

  std::shared_ptr<ThreadWorld> world_;
  int rank_;
  int ranks_per_node_;
  WaitPolicy policy_;
};

}  // namespace forebay
