// The input pipeline of an emulated training: threads decode JPEG files, crop, mirror and normalize
// them, and put batches together ahead of who asks for them.
//
//   files in memory -> decode 3x256x256 -> crop at random -> float -> batch | batch | -> next()
//
// The files are made here, from smooth shapes and some noise, so that they compress like photos.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <mutex>
#include <stop_token>
#include <vector>

#include "core/non_copyable.hpp"
#include "core/placement.hpp"
#include "core/process_usage.hpp"

namespace forebay::emulation {

enum class Input : std::uint8_t {
  real,       ///< as above
  synthetic,  ///< threads write batches of numbers, without decoding
  none,       ///< no threads: there is always a batch
};

struct FeedOptions {
  Input input = Input::real;
  unsigned threads = 2;  ///< at least 1
  std::uint64_t batch = 32;
  std::uint64_t side = 224;  ///< of the crops
  unsigned ahead = 2;        ///< batches that are made before they are asked for
  std::uint64_t files = 32;  ///< that differ; at least 1
  Placement placement;       ///< of the threads
};

/// next() is for one thread; the rest is thread-safe.
class ImageFeed : private NonCopyable {
 public:
  /// Makes the files and starts the threads. Throws usage for a placement that is not possible.
  explicit ImageFeed(const FeedOptions& options);
  ~ImageFeed();

  /// Waits for a batch, and uses it up. Throws what a thread has failed with.
  void next();
  /// Of all threads together, up to the last image that each has finished.
  ProcessUsage cost() const;
  /// For how long any of the threads has been at work so far, in nanoseconds.
  std::int64_t active_ns() const;
  std::uint64_t images() const;

 private:
  using Lock = std::unique_lock<std::mutex>;
  struct Slot {
    std::vector<float> values;
    std::uint64_t filled = 0;  ///< images
  };

  void live(const std::stop_token& stop, std::size_t thread);
  bool may_begin() const;
  void make_image(std::uint64_t image, float* into, std::vector<std::byte>& pixels) const;
  void set_busy(int change);

  FeedOptions options_;
  std::vector<std::vector<std::byte>> files_;

  mutable std::mutex mutex_;
  std::condition_variable_any room_;
  std::condition_variable ready_;
  // All below is guarded by mutex_, but for values of slots that threads fill.
  std::vector<Slot> slots_;
  std::uint64_t begun_ = 0;  // images
  std::uint64_t used_ = 0;   // batches
  int busy_ = 0;             // threads
  std::int64_t busy_since_ns_ = 0;
  std::int64_t active_ns_ = 0;
  std::vector<ProcessUsage> costs_;
  std::exception_ptr error_;

  std::vector<HelperThread> threads_;  // last: they end before what they use
};

}  // namespace forebay::emulation
