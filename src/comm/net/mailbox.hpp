// Where frames that have come meet those who wait for them.
//
//   the network thread                              everybody else
//   begin(): is there memory that waits? --yes-->   post(): here is memory for the next one
//      no: memory of its own                        take(): the oldest that has come
//   end(): it is there                              wait(): until something is there
//
// Frames of one source and port are received in the order in which they came; what is posted is
// filled in the order in which it was posted. Communicators are known by numbers that are never
// used again: frames for one that does not exist here yet are kept for it, and frames for one that
// has ended here are dropped.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "comm/net/frame.hpp"
#include "comm/waiting.hpp"
#include "core/non_copyable.hpp"

namespace forebay::net {

/// Memory that waits for one frame.
struct Posted {
  enum class State : std::uint8_t { waiting, filled, misfit };

  int source = 0;
  Port port;
  std::span<std::byte> to;
  bool wakes = true;                          ///< who waits, as soon as it is filled
  std::atomic<State> state = State::waiting;  ///< misfit: a frame of another length has come
};

/// The frame that is being received from one source.
struct Arrival {
  Posted* posted = nullptr;    ///< where it goes, else to memory of its own
  std::vector<std::byte> own;  ///< the payload
  bool dropped = false;        ///< whoever waited for it has given up
};

/// Memory that other ranks read.
struct ServedMemory {
  std::span<const std::byte> bytes;
  std::shared_ptr<const void> owner;
};

/// Thread-safe, but for what is said.
class Mailbox : private NonCopyable {
 public:
  explicit Mailbox(int ranks) : peers_(static_cast<std::size_t>(ranks)) {}

  // For the thread that receives from `source`, one at a time for each source.

  std::span<std::byte> begin(int source, const FrameHeader& header, Arrival& arrival);
  void end(int source, const FrameHeader& header, Arrival& arrival);

  void post(Posted& posted);
  /// Takes it back; the frame for it may be on its way into it all the same: see Arrival.
  void withdraw(Posted& posted);
  std::optional<std::vector<std::byte>> take(int source, const Port& port);
  std::optional<std::vector<std::byte>> take_notice(std::uint64_t communicator);

  void serve(std::uint64_t communicator, ServedMemory memory);
  /// Empty where there is none.
  ServedMemory served(std::uint64_t communicator);

  /// The communicator has ended here.
  void forget(std::uint64_t communicator);

  // What became of other ranks.

  /// It has said farewell.
  void set_ended(int rank);
  /// It has not. `how` completes "this rank is gone: ".
  void set_gone(int rank, const std::string& how);
  bool is_there(int rank) const { return state_of(rank) == PeerState::there; }
  bool is_gone(int rank) const { return state_of(rank) == PeerState::gone; }
  bool any_gone() const { return gone_ > 0; }
  /// Throws communication, with the rank, for one that does not send any more.
  [[noreturn]] void fail_for(int rank);
  /// Throws communication where one of `ranks` is gone.
  void check(std::span<const int> ranks);

  /// For whoever waits: something has changed that it does not hear of otherwise.
  void wake();

  /// Sleeps until `ready()`, which is called with no lock held and may throw. `what` completes
  /// "waited 600 s for ...". Throws communication past the timeout, and what the interrupt throws.
  template <typename Ready>
  void wait(const WaitPolicy& policy, const std::string& what, Ready ready) {
    if (ready()) return;
    Waiting waiting(policy, what);
    auto next_check = Clock::now() + kSlice;
    for (;;) {
      const std::uint64_t seen = changes_.load(std::memory_order_acquire);
      if (ready()) return;
      sleep(seen, next_check);
      if (Clock::now() < next_check) continue;
      waiting.check();
      next_check = Clock::now() + kSlice;
    }
  }

 private:
  using Clock = std::chrono::steady_clock;
  using Message = std::vector<std::byte>;
  enum class PeerState : std::uint8_t { there, ended, gone };
  static constexpr std::chrono::milliseconds kSlice{20};

  struct Slot {
    std::list<Message> arrived;
    std::list<Posted*> posted;
  };
  struct Box {
    std::map<std::pair<int, Port>, Slot> slots;
    std::deque<Message> notices;
    ServedMemory memory;
  };
  struct Peer {
    std::atomic<PeerState> state = PeerState::there;
    std::string how;
  };

  PeerState state_of(int rank) const {
    return peers_[static_cast<std::size_t>(rank)].state.load(std::memory_order_acquire);
  }
  Box* box(std::uint64_t communicator);
  void sleep(std::uint64_t seen, Clock::time_point until);
  void fill(Posted& posted, bool fits);
  void changed();

  std::mutex mutex_;  ///< of all that follows
  std::condition_variable woken_;
  std::atomic<std::uint64_t> changes_ = 0;
  std::unordered_map<std::uint64_t, Box> boxes_;
  std::unordered_set<std::uint64_t> ended_;
  std::vector<Peer> peers_;
  std::atomic<int> gone_ = 0;
};

}  // namespace forebay::net
