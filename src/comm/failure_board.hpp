// How one rank's failure reaches all: a board in the shared memory of each node, and notices by
// message between the nodes.
//
//   rank that fails --> board of its node        (first one wins; all ranks of the node read it)
//                   \-> notice to the leader (node rank 0) of every other node --> their boards
//
// Every wait of a loader looks at the board at least ten times a second, and the leaders look for
// notices at the same rate, so a failure is known everywhere well within 5 s. The board also tells
// when a rank of the node has died without a word.
//
// Thread-safe. With less than MPI_THREAD_MULTIPLE only the main thread may call poll(), and a
// failure found by a helper thread leaves the node with the main thread's next poll().
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string_view>
#include <vector>

#include "core/non_copyable.hpp"
#include "forebay/communicator.hpp"
#include "forebay/error.hpp"

namespace forebay {

class FailureBoard : private NonCopyable {
 public:
  /// Collective over `world`, which carries messages from now on (with what that means for its
  /// end) where there are several nodes; `node` is this rank's part of it. One board for each
  /// communicator, also one after the other: several ranks may tell of a failure, and what this
  /// board did not receive any more would be on the next one.
  FailureBoard(std::shared_ptr<Communicator> world, std::shared_ptr<Communicator> node);
  /// Marks this rank as gone in good order. Local.
  ~FailureBoard();

  /// Publishes `error` unless another failure is on the board already. Does not throw when other
  /// nodes cannot be told: that is logged.
  void fail(const Error& error);
  bool failed() const;
  /// Throws the failure on the board, if there is one. One atomic load when all is well.
  void check() const;
  /// Sends and receives notices, and once a second looks whether the ranks of the node still live.
  void poll();

  /// Whether notices cross nodes at all.
  bool several_nodes() const { return !other_leaders_.empty(); }

 private:
  struct Memory;

  void share_memory(Communicator& node);
  void publish(const std::string& text);
  void send_pending();
  void receive();
  void check_world();
  void check_peers();

  std::shared_ptr<Communicator> world_;
  int node_rank_ = 0;
  std::unique_ptr<SharedMemory> shared_;
  Memory* memory_ = nullptr;  ///< inside shared_
  std::vector<int> node_world_ranks_;
  std::vector<int> other_leaders_;
  std::mutex poll_mutex_;
  std::atomic<bool> to_send_ = false;
  std::chrono::steady_clock::time_point next_peer_check_;
};

// What fails on one rank, fails on all: the failure board as one who is polled by the progress
// thread uses it.
//
//   a turn of the thread   look at the board now and then, do what is to be done
//   whatever it throws     goes on the board; the first failure of all ranks is what counts

class CommonFailure {
 public:
  /// Collective; see FailureBoard.
  CommonFailure(std::shared_ptr<Communicator> comm, std::shared_ptr<Communicator> node);

  /// For any thread: all ranks' next turns fail.
  void fail(const Error& error) { board_.fail(error); }

  /// Of the progress thread: one turn. Returns the first failure of all ranks, this one's or
  /// another's, once there is one. `what`: for what is thrown other than an Error.
  std::optional<Error> turn(std::string_view what, const std::function<void()>& work);

  /// Whether an exception that was not there when this was made unwinds the stack of the caller.
  bool unwinding() const;

 private:
  void look();
  Error first(const Error& mine);

  FailureBoard board_;
  const int exceptions_;  ///< that unwound the stack when this was made
  std::int64_t next_look_ns_ = 0;
};

}  // namespace forebay
