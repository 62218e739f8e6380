// Decoding a batch: its samples are shared out to a pool of threads, in chunks of some of them.
//
//   samples   0 1 2 3 | 4 5 6 7 | 8 9         a chunk makes about 64 KiB of fields, so that one
//   threads      a    |    b    |  a          pool serves few large samples and many small ones
//   arrays    each sample's fields go to its own place
//
// What comes out does not depend on the number of threads. Of several samples that do not decode,
// `fail` names the first of the batch; `skip` leaves all of them out and closes the gaps.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "core/worker_pool.hpp"
#include "forebay/options.hpp"
#include "loader/decoded_arrays.hpp"
#include "loader/delivery.hpp"

namespace forebay {

/// Decodes the value of `sample` into `fields`, one a schema field. Throws what the codec throws,
/// naming sample and key. Thread-safe.
void decode_sample(const Codec& codec, const Sample& sample,
                   std::span<const std::span<std::byte>> fields);

/// Belongs to one caller at a time, but for stop() and busy_seconds().
class DecodePool {
 public:
  /// `threads`: the caller of decode() among them. Up to `kept` batches have memory that is used
  /// again. `check` throws when the values of a batch may have changed while they were decoded.
  DecodePool(
      std::shared_ptr<const Codec> codec, Undecodable undecodable, unsigned threads,
      std::size_t kept, const Placement& placement = {}, std::function<void()> check = [] {});

  /// Sets arrays and skipped of `delivery`, and takes those that are skipped out of its samples.
  /// Throws corrupt or unsupported for a sample that does not decode, unless those are skipped;
  /// cancelled after stop().
  void decode(Delivery& delivery);
  /// Ends a decode() in progress within the time of one sample.
  void stop() { stopping_ = true; }

  unsigned threads() const { return workers_.threads(); }
  /// Time that threads have decoded, all together.
  double busy_seconds() const { return static_cast<double>(busy_ns_) * 1e-9; }

 private:
  /// A sample that does not decode.
  struct Bad {
    std::size_t index = 0;
    SkippedSample what;
  };
  struct Chunk {
    std::size_t first = 0;
    std::size_t end = 0;
    std::vector<Bad> bad;
  };

  std::vector<Chunk> chunks_of(std::size_t samples) const;
  void decode_chunk(const Delivery& delivery, const DecodedArrays& arrays, Chunk& chunk);
  bool leave_out(const Error& error) const;
  static void close_gaps(std::span<Chunk> chunks, DecodedArrays& arrays, Delivery& delivery);

  std::shared_ptr<const Codec> codec_;
  std::shared_ptr<const Schema> schema_;  ///< of the codec
  Undecodable undecodable_;
  std::function<void()> check_;
  std::shared_ptr<ArrayPool> memory_;
  std::atomic<bool> stopping_ = false;
  std::atomic<std::int64_t> busy_ns_ = 0;
  WorkerPool workers_;
};

}  // namespace forebay
