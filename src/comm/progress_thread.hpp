// The one thread of a process that keeps MPI going while the others compute.
//
// Neither Open MPI nor MPICH makes progress by itself, so whoever needs something to move in the
// background registers a poller here. The thread calls all pollers in turn; when none of them had
// work it sleeps, from 50 us doubling up to `idle_interval`.
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

  explicit ProgressThread(std::chrono::microseconds idle_interval = std::chrono::milliseconds(50));

  /// Deregisters at destruction, after which the poller is not called any more.
  /// Must not outlive the thread.
  class Registration {
   public:
    Registration() = default;
    Registration(ProgressThread* thread, std::list<Poller>::iterator poller);
    Registration(Registration&& other) noexcept;
    Registration& operator=(Registration&& other) noexcept;
    ~Registration();

   private:
    ProgressThread* thread_ = nullptr;
    std::list<Poller>::iterator poller_;
  };

  /// Thread-safe.
  [[nodiscard]] Registration add(Poller poller);

 private:
  void run(const std::stop_token& stop);
  bool poll_all();

  std::chrono::microseconds idle_interval_;
  std::mutex mutex_;
  std::list<Poller> pollers_;
  HelperThread thread_;
};

}  // namespace forebay
