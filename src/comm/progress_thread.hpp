// The one thread of a process that keeps MPI going while the others compute.
//
// Neither Open MPI nor MPICH makes progress by itself, so whoever needs something to move in the
// background registers a poller here. A turn of the thread calls all pollers, one after the other;
// then it sleeps for the shortest rest that any of them has asked for, or until it is woken:
//
//   poller                       asks for
//   returns a Rest               that rest: 0 is another turn at once, kAnyRest is sleep until
//                                somebody calls wake(), for ever if need be
//   returns whether it worked    50 us after work of such a poller; without, a fifth of the time
//                                since there was some, up to its longest rest or, where that is
//                                more, a hundredth of that time, and to `idle_interval`
//
// wake() is for who has put something where a poller looks. It is one atomic exchange, and a system
// call only when the thread sleeps:
//
//   state:   awake --(falls asleep)--> asleep --(woken, or time is up)--> awake
//              \--- wake() ---> woken --- goes on with another turn ---> awake
//
// What was written before wake() is seen by the turn that follows it; no wake-up is lost.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <future>
#include <list>
#include <memory>
#include <mutex>

#include "core/non_copyable.hpp"
#include "core/placement.hpp"
#include "core/process_usage.hpp"

namespace forebay {

class ProgressThread : private NonCopyable {
 public:
  /// How long a poller can do without a call. Others may call for a turn before that.
  using Rest = std::chrono::microseconds;
  /// An exception ends the poller's registration and is logged.
  using Poller = std::function<bool()>;
  using RestingPoller = std::function<Rest()>;
  /// For pollers that any rest suits.
  static constexpr Rest kAnyRest = Rest::max();

  /// Starts the thread. Throws usage for a placement that is not possible.
  explicit ProgressThread(std::chrono::microseconds idle_interval = std::chrono::milliseconds(50),
                          const Placement& placement = {});
  ~ProgressThread() = default;

  struct Entry {
    RestingPoller poller;
  };

  /// Deregisters at destruction, after which the poller is not called any more. Not to be destroyed
  /// by a poller. Must not outlive the thread.
  class Registration {
   public:
    Registration() = default;
    Registration(ProgressThread* thread, std::list<Entry>::iterator entry);
    Registration(Registration&& other) noexcept;
    Registration& operator=(Registration&& other) noexcept;
    ~Registration();

    /// See ProgressThread::wake().
    void wake() const {
      if (thread_ != nullptr) thread_->wake();
    }

   private:
    ProgressThread* thread_ = nullptr;
    std::list<Entry>::iterator entry_;
  };

  // All that follows is thread-safe, and local.

  /// `longest_rest`: how long the poller can do without a call when nothing happens; others then
  /// wait for it that long at most, and half as long on average. At 7 ms an idle thread takes some
  /// 0.5 % of a core; therefore rests grow on, to a hundredth of the time since something happened.
  [[nodiscard]] Registration add(Poller poller, std::chrono::microseconds longest_rest = kAnyRest);
  [[nodiscard]] Registration add(RestingPoller poller);

  /// Makes the next turn begin now, or right after the one that goes on.
  void wake();

  /// Moves the thread to other cores, unless someone has placed it before; tells whether the
  /// thread is now where `placement` says. Not to be called by a poller, nor while holding what a
  /// poller waits for. Throws usage for a placement that is not possible.
  bool place(const Placement& placement);

  /// What the thread has spent since it began, as of at most 10 ms of its own activity ago.
  ProcessUsage usage() const;

 private:
  enum class State : std::uint32_t { awake, woken, asleep };
  class Access;
  struct Move {
    Placement placement;
    std::promise<void> done;
  };

  void run(const std::stop_token& stop);
  Rest turn();
  Rest rest_after(bool worked, Rest longest_rest);
  void sleep(Rest rest);
  void place_if_asked();
  void publish_usage(Rest before_rest);

  std::chrono::microseconds idle_interval_;
  std::atomic<State> state_ = State::awake;
  std::mutex mutex_;                     ///< of the pollers, also while they are called
  std::atomic<int> wanting_access_ = 0;  ///< who waits for mutex_ beside the thread itself
  std::list<Entry> pollers_;
  std::chrono::steady_clock::time_point last_work_;  ///< of pollers that tell; of the thread

  mutable std::mutex facts_mutex_;  ///< of what follows
  Placement placement_;
  std::shared_ptr<Move> move_;
  ProcessUsage usage_;
  std::atomic<bool> move_wanted_ = false;
  std::chrono::steady_clock::time_point usage_published_;  ///< of the thread

  HelperThread thread_;
};

/// The progress thread that all of this process share: made by the first who asks, ends with the
/// last. Whoever asks first with a placement other than `shared` places it; a later wish for other
/// cores is logged and ignored. Thread-safe, local. Not to be released by a poller. Throws usage
/// for a placement that is not possible.
std::shared_ptr<ProgressThread> progress_thread(const Placement& placement = {});

}  // namespace forebay
