// Ranks as threads of one process: the same interface, no MPI. One ThreadWorld is one group of
// ranks; every collective call is a meeting in which each rank shows a pointer to the others.
#include <sys/mman.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <condition_variable>
#include <cstring>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <system_error>
#include <thread>
#include <tuple>
#include <utility>
#include <vector>

#include "comm/messages.hpp"
#include "comm/node_groups.hpp"
#include "comm/thread_parts.hpp"
#include "comm/values.hpp"
#include "comm/waiting.hpp"
#include "core/limits.hpp"
#include "forebay/communicator.hpp"
#include "forebay/error.hpp"

namespace forebay {
namespace {

using Bytes = std::span<const std::byte>;

/// Anonymous memory, whose pages come when they are touched.
std::shared_ptr<std::byte> anonymous_memory(std::size_t bytes) {
  void* const address = mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                             MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (address == MAP_FAILED) {
    throw no_memory(bytes, "the stage, or what ranks hold for each other", "--stage-bytes");
  }
  return {static_cast<std::byte*>(address), [bytes](std::byte* memory) { munmap(memory, bytes); }};
}

/// The ranks share memory because they share the address space.
class SharedByThreads final : public SharedMemory {
 public:
  SharedByThreads(std::shared_ptr<std::byte> memory, std::size_t bytes)
      : memory_(std::move(memory)), bytes_(bytes) {}
  std::span<std::byte> bytes() const override { return {memory_.get(), bytes_}; }
  /// Asks ahead, and not often: the system gives pages as they are touched, until it ends somebody.
  void reserve(std::size_t, std::size_t size) override {
    constexpr std::size_t kAhead = std::size_t{16} << 20;
    const std::size_t before = reserved_.fetch_add(size);
    if (before / kAhead == (before + size) / kAhead) return;
    require_memory(std::max(size, kAhead), "windows of the stage", "--stage-bytes or --buffers");
  }

 private:
  std::shared_ptr<std::byte> memory_;
  std::size_t bytes_;
  std::atomic<std::size_t> reserved_ = 0;
};

using ThreadNumber = std::atomic<std::uint64_t>;

class CounterOfThreads final : public SharedCounter {
 public:
  explicit CounterOfThreads(std::shared_ptr<ThreadNumber> number) : number_(std::move(number)) {}

  std::optional<std::uint64_t> fetch_add(std::uint64_t n, const GiveUp&) override {
    return number_->fetch_add(n);
  }
  void add(std::uint64_t n) override { number_->fetch_add(n); }
  bool serve() override { return false; }
  bool needs_serving() const override { return false; }
  std::string describe() const override { return "a number of this process"; }

 private:
  std::shared_ptr<ThreadNumber> number_;
};

void copy(std::span<std::byte> to, const void* from) {
  if (!to.empty()) std::memcpy(to.data(), from, to.size());
}

class ThreadWorld {
 public:
  /// `ended` tells whether a rank of the run has ended with an error; waits then fail.
  ThreadWorld(int ranks, std::function<bool()> ended)
      : ended_(std::move(ended)), shown_(ranks, nullptr), notices_(ranks) {}

  int size() const { return static_cast<int>(shown_.size()); }
  const std::function<bool()>& ended() const { return ended_; }

  /// All ranks show `mine`; `look` sees what all have shown, ordered by rank, and no rank goes on
  /// before every rank has looked. A rank may give up until all have come; what it has shown is
  /// then looked at by no one.
  void meet(int rank, const void* mine, const WaitPolicy& policy,
            const std::function<void(const std::vector<const void*>&)>& look) {
    {
      const std::lock_guard lock(mutex_);
      shown_[rank] = mine;
    }
    wait_for_all(policy);
    std::exception_ptr failure;
    try {
      look(shown_);
    } catch (...) {
      failure = std::current_exception();
    }
    wait_until_all_have_looked();
    if (failure) std::rethrow_exception(failure);
  }

  void notify(int to, std::vector<std::byte> message) {
    const std::lock_guard lock(mutex_);
    notices_[to].push_back(std::move(message));
  }

  std::optional<std::vector<std::byte>> notice(int rank) {
    const std::lock_guard lock(mutex_);
    return take(notices_[rank]);
  }

  void send(int from, int to, std::vector<std::byte> message) {
    const std::lock_guard lock(mutex_);
    messages_[{from, to}].push_back(std::move(message));
  }

  std::optional<std::vector<std::byte>> receive(int from, int to) {
    const std::lock_guard lock(mutex_);
    const auto messages = messages_.find({from, to});
    return messages == messages_.end() ? std::nullopt : take(messages->second);
  }

 private:
  void wait_for_all(const WaitPolicy& policy) {
    std::unique_lock lock(mutex_);
    const std::uint64_t meetings = meetings_;
    if (++here_ == size()) {
      here_ = 0;
      ++meetings_;
      changed_.notify_all();
      return;
    }
    Waiting waiting(policy, "the other ranks");
    while (!changed_.wait_for(lock, std::chrono::milliseconds(20),
                              [&] { return meetings_ != meetings; })) {
      lock.unlock();
      try {
        waiting.check();
        if (ended_ && ended_()) throw Error(ErrorKind::communication, "another rank ended", "");
        lock.lock();
      } catch (...) {
        lock.lock();
        // The last one came in the meantime: the others look at what this rank shows, so it stays.
        if (meetings_ != meetings) return;
        --here_;
        throw;
      }
    }
  }

  // No deadline: all have come, and all that they do before this point is to copy memory.
  void wait_until_all_have_looked() {
    std::unique_lock lock(mutex_);
    const std::uint64_t partings = partings_;
    if (++looked_ == size()) {
      looked_ = 0;
      ++partings_;
      changed_.notify_all();
      return;
    }
    changed_.wait(lock, [&] { return partings_ != partings; });
  }

  std::function<bool()> ended_;
  std::mutex mutex_;
  std::condition_variable changed_;
  int here_ = 0;
  std::uint64_t meetings_ = 0;  ///< in which all have come
  int looked_ = 0;
  std::uint64_t partings_ = 0;  ///< in which all have looked
  std::vector<const void*> shown_;
  using Messages = std::deque<std::vector<std::byte>>;
  static std::optional<std::vector<std::byte>> take(Messages& messages) {
    if (messages.empty()) return std::nullopt;
    auto message = std::move(messages.front());
    messages.pop_front();
    return message;
  }

  std::vector<Messages> notices_;                     ///< by receiver
  std::map<std::pair<int, int>, Messages> messages_;  ///< by sender and receiver
};

class ThreadCommunicator final : public Communicator {
 public:
  /// `ranks_per_node` as in run_ranks.
  ThreadCommunicator(std::shared_ptr<ThreadWorld> world, int rank, int ranks_per_node)
      : world_(std::move(world)), rank_(rank), ranks_per_node_(ranks_per_node) {}

  int rank() const override { return rank_; }
  int size() const override { return world_->size(); }
  void barrier() override {
    world_->meet(rank_, nullptr, policy_, [](const auto&) {});
  }
  void broadcast(std::span<std::byte> data, int root) override {
    world_->meet(rank_, data.data(), policy_, [&](const auto& shown) {
      if (rank_ != root) copy(data, shown[root]);
    });
  }

  void all_gather(Bytes mine, std::span<std::byte> all) override {
    world_->meet(rank_, mine.data(), policy_, [&](const auto& shown) {
      for (std::size_t r = 0; r < shown.size(); ++r) {
        copy(all.subspan(r * mine.size(), mine.size()), shown[r]);
      }
    });
  }

  std::vector<std::vector<std::byte>> gather(Bytes mine, int root) override {
    std::vector<std::vector<std::byte>> all;
    world_->meet(rank_, &mine, policy_, [&](const auto& shown) {
      if (rank_ != root) return;
      for (const void* pointer : shown) {
        const auto& bytes = *static_cast<const Bytes*>(pointer);
        all.emplace_back(bytes.begin(), bytes.end());
      }
    });
    return all;
  }

  void all_reduce_sum(std::span<float> values) override {
    std::vector<float> sum(values.size(), 0.0F);
    world_->meet(rank_, values.data(), policy_, [&](const auto& shown) {
      for (const void* pointer : shown) {
        const auto* other = static_cast<const float*>(pointer);
        for (std::size_t i = 0; i < sum.size(); ++i) sum[i] += other[i];
      }
    });
    std::copy(sum.begin(), sum.end(), values.begin());
  }

  std::shared_ptr<Communicator> split(int color, int key) override {
    struct Member {
      int color, key, rank;
    };
    const Member me{color, key, rank_};
    std::vector<Member> group;
    world_->meet(rank_, &me, policy_, [&](const auto& shown) {
      for (const void* pointer : shown) {
        const auto& member = *static_cast<const Member*>(pointer);
        if (member.color == color) group.push_back(member);
      }
    });
    std::sort(group.begin(), group.end(), [](const Member& a, const Member& b) {
      return std::tie(a.key, a.rank) < std::tie(b.key, b.rank);
    });
    const auto here = std::find_if(group.begin(), group.end(),
                                   [&](const Member& member) { return member.rank == rank_; });
    std::shared_ptr<ThreadWorld> world;
    if (here == group.begin()) {
      world = std::make_shared<ThreadWorld>(static_cast<int>(group.size()), world_->ended());
    }
    world = hand_around(world, group.front().rank);
    auto result = std::make_shared<ThreadCommunicator>(
        std::move(world), static_cast<int>(here - group.begin()), ranks_per_node_);
    result->policy_ = policy_;
    return result;
  }

  std::shared_ptr<Communicator> split_by_node() override {
    return split_into_virtual_nodes(*this, ranks_per_node_);
  }
  std::unique_ptr<SharedMemory> share(std::size_t bytes, SharedMemoryKind) override {
    std::shared_ptr<std::byte> memory;
    collectively(*this, [&] {
      if (rank_ == 0) memory = anonymous_memory(bytes);
    });
    return std::make_unique<SharedByThreads>(hand_around(memory, 0), bytes);
  }

  std::unique_ptr<SharedCounter> share_counter() override {
    std::shared_ptr<ThreadNumber> number;
    if (rank_ == 0) number = std::make_shared<ThreadNumber>(0);
    return std::make_unique<CounterOfThreads>(hand_around(number, 0));
  }

  std::unique_ptr<RemoteMemory> expose(Communicator& node, std::size_t bytes,
                                       SharedMemoryKind) override {
    const auto mine = std::make_shared<std::vector<std::byte>>(bytes);
    std::vector<ThreadMemory> parts;
    world_->meet(rank_, &mine, policy_, [&](const auto& shown) {
      for (const void* pointer : shown) parts.push_back(*static_cast<const ThreadMemory*>(pointer));
    });
    std::vector<bool> near(parts.size(), false);
    for (const int rank : gather_all(node, rank_)) near[rank] = true;
    return memory_of_threads(rank_, std::move(parts), std::move(near));
  }

  std::unique_ptr<CommonFile> open_together(const std::string& path) override {
    return open_by_threads(split(0, rank_), path);
  }
  std::unique_ptr<NonblockingCollectives> nonblocking() override {
    std::shared_ptr<ThreadOperations> operations;
    if (rank_ == 0) operations = make_thread_operations(size(), world_->ended());
    return thread_nonblocking(hand_around(operations, 0), rank_);
  }

  void send_notice(int to, Bytes message) override {
    world_->notify(to, {message.begin(), message.end()});
  }
  std::optional<std::vector<std::byte>> poll_notice() override { return world_->notice(rank_); }
  void send(int to, Bytes message) override {
    require_sendable(message.size());
    world_->send(rank_, to, {message.begin(), message.end()});
  }

  std::optional<std::vector<std::byte>> try_receive(int from) override {
    return world_->receive(from, rank_);
  }
  bool concurrent() const override { return true; }
  void set_timeout(std::chrono::milliseconds timeout) override { policy_.timeout = timeout; }
  std::chrono::milliseconds timeout() const override { return policy_.timeout; }
  void set_interrupt(std::function<void()> interrupt) override {
    policy_.interrupt = std::move(interrupt);
  }

 private:
  /// What rank `from` has given.
  template <typename T>
  std::shared_ptr<T> hand_around(const std::shared_ptr<T>& mine, int from) {
    std::shared_ptr<T> theirs;
    world_->meet(rank_, &mine, policy_, [&](const auto& shown) {
      theirs = *static_cast<const std::shared_ptr<T>*>(shown[from]);
    });
    return theirs;
  }

  std::shared_ptr<ThreadWorld> world_;
  int rank_;
  int ranks_per_node_;
  WaitPolicy policy_;
};

}  // namespace

std::shared_ptr<Communicator> self_communicator() {
  return std::make_shared<ThreadCommunicator>(std::make_shared<ThreadWorld>(1, nullptr), 0, 0);
}

void run_ranks(int ranks, int ranks_per_node,
               const std::function<void(std::shared_ptr<Communicator>)>& body) {
  // Shared, since a communicator may outlive this call.
  const auto failed = std::make_shared<std::atomic<bool>>(false);
  auto world = std::make_shared<ThreadWorld>(ranks, [failed] { return failed->load(); });
  std::vector<std::exception_ptr> exceptions(ranks);
  {
    std::vector<std::jthread> threads;
    for (int rank = 0; rank < ranks; ++rank) {
      threads.emplace_back([&, rank] {
        try {
          body(std::make_shared<ThreadCommunicator>(world, rank, ranks_per_node));
        } catch (...) {
          exceptions[rank] = std::current_exception();
          *failed = true;
        }
      });
    }
  }
  for (const auto& exception : exceptions) {
    if (exception) std::rethrow_exception(exception);
  }
}

}  // namespace forebay
