// What the kernel has for a reader by io_uring, in RAII: one ring, with the answers of liburing
// made uniform, and a second descriptor of a file. Exists where liburing does.
#pragma once

#include <liburing.h>

#include <chrono>
#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "core/non_copyable.hpp"
#include "storage/request_splitter.hpp"

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

/// The second descriptor of a file, for reads past the page cache (O_DIRECT).
/// Not open at first. Opened through the first descriptor, so that it is the same file even if the
/// path now names another. Where O_DIRECT is refused, usable() is false and the log says so.
class DirectFile : private NonCopyable {
 public:
  ~DirectFile();

  /// Call once. `fd` is the first descriptor.
  void open(int fd, const std::string& path);
  bool usable() const { return rules_.offset_alignment != 0; }
  int get() const { return fd_; }
  /// Zeros when not usable.
  DirectRules rules() const { return rules_; }
  /// For a file system that accepts the flag at open, but not the reads.
  void refuse(const std::string& path, int error);

 private:
  int fd_ = -1;
  DirectRules rules_;
};

}  // namespace forebay
