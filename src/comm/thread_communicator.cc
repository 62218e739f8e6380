#include "comm/thread_communicator.hpp"

#include <sys/mman.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <system_error>
#include <thread>
#include <tuple>

#include "comm/messages.hpp"
#include "comm/node_groups.hpp"
#include "comm/thread_parts.hpp"
#include "comm/values.hpp"
#include "forebay/error.hpp"

namespace forebay {
namespace {

using Bytes = std::span<const std::byte>;

/// Anonymous memory; the ranks share it because they share the address space.
class AnonymousMemory {
 public:
  explicit AnonymousMemory(std::size_t bytes) : bytes_(bytes) {
    address_ = mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (address_ == MAP_FAILED) {
      throw Error(ErrorKind::io,
                  "mmap of " + std::to_string(bytes) +
                      " bytes of memory failed: " + std::generic_category().message(errno),
                  "lower --stage-bytes");
    }
  }
  AnonymousMemory(const AnonymousMemory&) = delete;
  AnonymousMemory& operator=(const AnonymousMemory&) = delete;
  ~AnonymousMemory() { munmap(address_, bytes_); }
  std::span<std::byte> bytes() const { return {static_cast<std::byte*>(address_), bytes_}; }

 private:
  void* address_ = nullptr;
  std::size_t bytes_;
};

class SharedByThreads final : public SharedMemory {
 public:
  explicit SharedByThreads(std::shared_ptr<AnonymousMemory> memory) : memory_(std::move(memory)) {}
  std::span<std::byte> bytes() const override { return memory_->bytes(); }
  void reserve(std::size_t, std::size_t) override {}  // anonymous pages come when touched

 private:
  std::shared_ptr<AnonymousMemory> memory_;
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

}  // namespace

ThreadWorld::ThreadWorld(int ranks, std::function<bool()> ended)
    : ended_(std::move(ended)), shown_(ranks, nullptr), notices_(ranks) {}

void ThreadWorld::meet(int rank, const void* mine, const WaitPolicy& policy,
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

void ThreadWorld::wait_for_all(const WaitPolicy& policy) {
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
void ThreadWorld::wait_until_all_have_looked() {
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

std::optional<std::vector<std::byte>> ThreadWorld::take(Messages& messages) {
  if (messages.empty()) return std::nullopt;
  auto message = std::move(messages.front());
  messages.pop_front();
  return message;
}

void ThreadWorld::notify(int to, std::vector<std::byte> message) {
  const std::lock_guard lock(mutex_);
  notices_[to].push_back(std::move(message));
}

std::optional<std::vector<std::byte>> ThreadWorld::notice(int rank) {
  const std::lock_guard lock(mutex_);
  return take(notices_[rank]);
}

void ThreadWorld::send(int from, int to, std::vector<std::byte> message) {
  const std::lock_guard lock(mutex_);
  messages_[{from, to}].push_back(std::move(message));
}

std::optional<std::vector<std::byte>> ThreadWorld::receive(int from, int to) {
  const std::lock_guard lock(mutex_);
  const auto messages = messages_.find({from, to});
  return messages == messages_.end() ? std::nullopt : take(messages->second);
}

ThreadCommunicator::ThreadCommunicator(std::shared_ptr<ThreadWorld> world, int rank,
                                       int ranks_per_node)
    : world_(std::move(world)), rank_(rank), ranks_per_node_(ranks_per_node) {}

void ThreadCommunicator::barrier() {
  world_->meet(rank_, nullptr, policy_, [](const auto&) {});
}

void ThreadCommunicator::broadcast(std::span<std::byte> data, int root) {
  world_->meet(rank_, data.data(), policy_, [&](const auto& shown) {
    if (rank_ != root) copy(data, shown[root]);
  });
}

void ThreadCommunicator::all_gather(Bytes mine, std::span<std::byte> all) {
  world_->meet(rank_, mine.data(), policy_, [&](const auto& shown) {
    for (std::size_t r = 0; r < shown.size(); ++r) {
      copy(all.subspan(r * mine.size(), mine.size()), shown[r]);
    }
  });
}

std::vector<std::vector<std::byte>> ThreadCommunicator::gather(Bytes mine, int root) {
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

void ThreadCommunicator::all_reduce_sum(std::span<float> values) {
  std::vector<float> sum(values.size(), 0.0F);
  world_->meet(rank_, values.data(), policy_, [&](const auto& shown) {
    for (const void* pointer : shown) {
      const auto* other = static_cast<const float*>(pointer);
      for (std::size_t i = 0; i < sum.size(); ++i) sum[i] += other[i];
    }
  });
  std::copy(sum.begin(), sum.end(), values.begin());
}

template <typename T>
std::shared_ptr<T> ThreadCommunicator::hand_around(const std::shared_ptr<T>& mine, int from) {
  std::shared_ptr<T> theirs;
  world_->meet(rank_, &mine, policy_, [&](const auto& shown) {
    theirs = *static_cast<const std::shared_ptr<T>*>(shown[from]);
  });
  return theirs;
}

std::shared_ptr<Communicator> ThreadCommunicator::split(int color, int key) {
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

std::shared_ptr<Communicator> ThreadCommunicator::split_by_node() {
  return split_into_virtual_nodes(*this, ranks_per_node_);
}

std::unique_ptr<SharedMemory> ThreadCommunicator::share(std::size_t bytes, SharedMemoryKind) {
  std::shared_ptr<AnonymousMemory> memory;
  collectively(*this, [&] {
    if (rank_ == 0) memory = std::make_shared<AnonymousMemory>(bytes);
  });
  return std::make_unique<SharedByThreads>(hand_around(memory, 0));
}

std::unique_ptr<SharedCounter> ThreadCommunicator::share_counter() {
  std::shared_ptr<ThreadNumber> number;
  if (rank_ == 0) number = std::make_shared<ThreadNumber>(0);
  return std::make_unique<CounterOfThreads>(hand_around(number, 0));
}

std::unique_ptr<RemoteMemory> ThreadCommunicator::expose(Communicator& node, std::size_t bytes,
                                                         SharedMemoryKind) {
  using Part = ThreadRemoteMemory::Part;
  const auto mine = std::make_shared<std::vector<std::byte>>(bytes);
  std::vector<Part> parts;
  world_->meet(rank_, &mine, policy_, [&](const auto& shown) {
    for (const void* pointer : shown) parts.push_back(*static_cast<const Part*>(pointer));
  });
  std::vector<bool> near(parts.size(), false);
  for (const int rank : gather_all(node, rank_)) near[rank] = true;
  return std::make_unique<ThreadRemoteMemory>(rank_, std::move(parts), std::move(near));
}

std::unique_ptr<CommonFile> ThreadCommunicator::open_together(const std::string& path) {
  return std::make_unique<ThreadFile>(split(0, rank_), path);
}

std::unique_ptr<NonblockingCollectives> ThreadCommunicator::nonblocking() {
  std::shared_ptr<ThreadOperations> operations;
  if (rank_ == 0) operations = make_thread_operations(size(), world_->ended());
  return thread_nonblocking(hand_around(operations, 0), rank_);
}

void ThreadCommunicator::send_notice(int to, Bytes message) {
  world_->notify(to, {message.begin(), message.end()});
}

std::optional<std::vector<std::byte>> ThreadCommunicator::poll_notice() {
  return world_->notice(rank_);
}

void ThreadCommunicator::send(int to, Bytes message) {
  require_sendable(message.size());
  world_->send(rank_, to, {message.begin(), message.end()});
}

std::optional<std::vector<std::byte>> ThreadCommunicator::try_receive(int from) {
  return world_->receive(from, rank_);
}

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
