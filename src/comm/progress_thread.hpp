// The one thread of a process that keeps MPI going while the others compute.
//
// Neither Open MPI nor MPICH makes progress by itself, so whoever needs something to move in the
// background registers a poller here. The thread calls all pollers in turn. After work it looks
// again 50 us later; without, it rests a fifth of the time since there was some, up to
// `idle_interval`, or to the shortest rest that a poller has asked for.
#pragma once

#include <chrono>
#include <functional>
#include <list>
#include <memory>
#include <mutex>

#include "core/placement.hpp"

namespace forebay {

class ProgressThread {
 public:
  /// Returns whether it had work. An exception ends the poller's registration and is logged.
  using Poller = std::function<bool()>;
  /// For pollers that any rest suits.
  static constexpr std::chrono::microseconds kAnyRest = std::chrono::microseconds::max();

  explicit ProgressThread(std::chrono::microseconds idle_interval = std::chrono::milliseconds(50));

  struct Entry {
    Poller poller;
    std::chrono::microseconds longest_rest;
  };

  /// Deregisters at destruction, after which the poller is not called any more.
  /// Must not outlive the thread.
  class Registration {
   public:
    Registration() = default;
    Registration(ProgressThread* thread, std::list<Entry>::iterator entry);
    Registration(Registration&& other) noexcept;
    Registration& operator=(Registration&& other) noexcept;
    ~Registration();

   private:
    ProgressThread* thread_ = nullptr;
    std::list<Entry>::iterator entry_;
  };

  /// `longest_rest`: how long the poller can do without a call when nothing happens; others then
  /// wait for it that long at most, and half as long on average. At 7 ms an idle thread takes some
  /// 0.3 % of a core. Thread-safe.
  [[nodiscard]] Registration add(Poller poller, std::chrono::microseconds longest_rest = kAnyRest);

 private:
  void run(const std::stop_token& stop);
  bool poll_all();
  std::chrono::microseconds longest_rest();

  std::chrono::microseconds idle_interval_;
  std::mutex mutex_;
  std::list<Entry> pollers_;
  HelperThread thread_;
};

}  // namespace forebay
