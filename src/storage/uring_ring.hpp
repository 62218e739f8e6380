// One io_uring, in RAII, with the answers of liburing made uniform. Exists where liburing does.
#pragma once

#include <liburing.h>

#include <chrono>
#include <cstdint>
#include <optional>
#include <span>

#include "core/non_copyable.hpp"

namespace forebay {

/// What the kernel answered to one submission: user_data as submitted, bytes or -errno.
struct RingAnswer {
  std::uint64_t user_data = 0;
  int result = 0;
};

/// Belongs to one thread. Closing it does not wait for what is in flight.
class Ring : private NonCopyable {
 public:
  /// `depth` submissions fit at once, and as many cancellations. Throws unsupported.
  explicit Ring(unsigned depth);
  ~Ring();

  /// Registers descriptors, to be named by index from then on; false where that is not possible.
  bool register_files(std::span<const int> descriptors);

  /// The next free entry; flushes the queue when it is full. The caller fills it.
  io_uring_sqe& entry();
  /// Hands all filled entries to the kernel. Throws io when it refuses for good.
  void submit();

  /// Takes one answer that is there.
  std::optional<RingAnswer> take();
  /// Sleeps until an answer is there, at most for `limit`; false when none came (or on a signal).
  bool wait(std::chrono::milliseconds limit);

 private:
  io_uring ring_{};
};

}  // namespace forebay
