// Waiting for bytes that this thread has to move itself.
//
// Most MPI libraries move what arrives only while they are asked, some kilobytes a time: a reader
// that sleeps between its questions is what the transfer then waits for. So each wait begins with
// questions that follow each other with no more than a yield, and each arrival begins a new wait.
// An arrival is all of a message, though, which may take a network ten milliseconds: rests grow
// with the time that nothing has come, but much slower than those of other waits.
#pragma once

#include <algorithm>
#include <chrono>
#include <string>
#include <thread>
#include <utility>

#include "comm/waiting.hpp"

namespace forebay {

/// As Waiting.
class BriskWaiting {
 public:
  BriskWaiting(const WaitPolicy& policy, std::string what) : waiting_(policy, std::move(what)) {}

  void step() {
    const auto quiet = std::chrono::steady_clock::now() - begin_;
    if (quiet < kBrisk) return std::this_thread::yield();
    std::this_thread::sleep_for(
        std::min<std::chrono::nanoseconds>(quiet / kShareOfQuietTime, kLongestRest));
    waiting_.check();
  }

 private:
  // Longer than one question takes that moves a whole message, of 1 MB at some GB/s.
  static constexpr std::chrono::microseconds kBrisk{500};
  // MPICH takes 64 KB a question out of a connection: at the end of a message of 1 MB that takes
  // 9 ms, over a link of 1 Gbit/s, questions are to be 0.5 ms apart at most.
  static constexpr int kShareOfQuietTime = 32;
  static constexpr std::chrono::milliseconds kLongestRest{1};

  Waiting waiting_;
  std::chrono::steady_clock::time_point begin_ = std::chrono::steady_clock::now();
};

}  // namespace forebay
