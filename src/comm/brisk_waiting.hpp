// Waiting for bytes that this thread has to move itself.
//
// Most MPI libraries move what arrives only while they are asked, a few kilobytes a time: a reader
// that sleeps between its questions is what the transfer then waits for. So the questions follow
// each other with no more than a yield, but not for long: each wait begins so, and each arrival
// begins a new wait. Where nothing comes, it goes on as any other wait does.
//
// For messages only. One-sided reads through MPICH gain by it in short trials and lose in long
// lists, so that the trial of transports would choose wrongly.
#pragma once

#include <chrono>
#include <string>
#include <thread>
#include <utility>

#include "comm/waiting.hpp"

namespace forebay {

/// As Waiting.
class BriskWaiting {
 public:
  BriskWaiting(const WaitPolicy& policy, std::string what)
      : waiting_(policy, std::move(what)), rests_from_(std::chrono::steady_clock::now() + kBrisk) {}

  /// Only yields in the first moments.
  void step() {
    if (std::chrono::steady_clock::now() >= rests_from_) return waiting_.step();
    std::this_thread::yield();
  }

 private:
  // Longer than one question takes that moves a whole message, of 1 MB at some GB/s.
  static constexpr std::chrono::microseconds kBrisk{500};

  Waiting waiting_;
  std::chrono::steady_clock::time_point rests_from_;
};

}  // namespace forebay
