// Which fillings of the shares may be read, as one process knows it: two numbers that only grow.
//
//   opened     generations below it were filled by all ranks, and may be read
//   released   generations below it are not read any more by this rank
//
// Generation g lies in buffer g mod K. The reader waits until g is opened; whoever fills waits
// until g - K was released, and then meets the other ranks, before it writes into that buffer.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <string>

#include "comm/waiting.hpp"

namespace forebay {

/// Thread-safe. Waits end by the policy's timeout (communication) and interrupt.
class Generations {
 public:
  /// Opens the next generation.
  void open();
  /// Generations up to and with `generation` are not read any more. Never goes back.
  void release(std::uint64_t generation);

  std::uint64_t opened() const;
  bool is_released(std::uint64_t generation) const;
  void wait_opened(std::uint64_t generation, const WaitPolicy& policy);
  void wait_released(std::uint64_t generation, const WaitPolicy& policy);

 private:
  template <typename Ready>
  void wait(const WaitPolicy& policy, const std::string& what, Ready ready);

  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::uint64_t opened_ = 0;
  std::uint64_t released_ = 0;
};

}  // namespace forebay
