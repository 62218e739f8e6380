// What a rank has in memory of the data set, while it is filled and once others look into it, and
// how a fetch out of all shares is taken apart.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "comm/remote_memory.hpp"
#include "comm/waiting.hpp"

namespace forebay {

// One fetch, taken apart: which samples are copied out of memory that this process sees, and which
// pieces have to be read from other nodes.

/// One sample as it is asked for.
struct Wanted {
  int owner = 0;             ///< the rank whose share holds it
  std::uint64_t index = 0;   ///< its place in that share, counted in samples
  std::uint64_t sample = 0;  ///< id in the data set, for messages only
  // For who asks: comes back with the sample, and nobody looks at it on the way.
  std::uint64_t draw = 0;      ///< number among what this rank draws in the epoch
  std::uint64_t position = 0;  ///< and in the epoch's list
  bool repeat = false;
};

class FetchPlan {
 public:
  explicit FetchPlan(std::uint64_t longest_piece) : longest_piece_(longest_piece) {}

  /// `from`: the sample's bytes where this process sees them.
  void add_near(std::span<const std::byte> from, std::span<std::byte> to);
  /// `offset`: bytes from the start of the owner's memory. Long samples become several pieces.
  void add_far(const Wanted& wanted, std::uint64_t offset, std::span<std::byte> to);

  /// Sorted by owner, and by place inside of each.
  std::span<const RemotePiece> far();
  void copy_near() const;

  std::uint64_t near_bytes() const { return near_bytes_; }
  std::uint64_t far_bytes() const { return far_bytes_; }
  /// Any one of the samples that come from other nodes.
  const Wanted& first_far() const { return first_far_; }

 private:
  struct Copy {
    std::span<const std::byte> from;
    std::byte* to;
  };

  std::uint64_t longest_piece_;
  std::vector<Copy> near_;
  std::vector<RemotePiece> far_;
  std::uint64_t near_bytes_ = 0;
  std::uint64_t far_bytes_ = 0;
  Wanted first_far_;
};

// Where the samples of one share lie in their owner's memory: offset and length in O(1).
//
// Samples of one size need no table. For others, with n samples that end at e(0) .. e(n-1), the
// encoded table holds the n + 1 bounds 0, e(0), .., e(n-1):
//
//   narrow   0 | bounds 0, 64, 128, .. in 64 bits | all bounds, less the one above, in 32 bits
//   wide     1 | all bounds in 64 bits            (where 64 samples take 4 GiB or more)
//
// which is 4.1 bytes a sample. The encoded form is what ranks send to each other; the reading side
// looks into it without unpacking, so that the ranks of a node can share one copy.

/// Thread-safe once made: only reads.
class ShareTable {
 public:
  struct Place {
    std::uint64_t offset = 0;  ///< bytes from the start of the share
    std::uint64_t bytes = 0;
  };

  /// No samples.
  ShareTable() = default;
  static ShareTable fixed(std::uint64_t samples, std::uint64_t sample_bytes);
  /// Looks into `encoded`, which outlives this object and begins at a multiple of 8.
  /// Throws communication when its length does not fit `samples`.
  static ShareTable over(std::span<const std::byte> encoded, std::uint64_t samples);

  std::uint64_t samples() const { return samples_; }
  /// `index` < samples().
  Place at(std::uint64_t index) const;

 private:
  enum class Form : std::uint8_t { fixed, narrow, wide };

  std::uint64_t bound(std::uint64_t number) const;

  Form form_ = Form::fixed;
  std::uint64_t samples_ = 0;
  std::uint64_t sample_bytes_ = 0;             ///< fixed
  std::span<const std::uint64_t> bounds_;      ///< narrow: every 64th; wide: all
  std::span<const std::uint32_t> from_above_;  ///< narrow
};

/// The encoded table of samples that end at `ends` (ascending), into `to`, which is
/// encoded_table_bytes() long.
void encode_table(std::span<const std::uint64_t> ends, std::span<std::byte> to);
std::uint64_t encoded_table_bytes(std::span<const std::uint64_t> ends);

// This rank's share of the data set while it is being filled: samples one behind the other.

/// Local, for one thread at a time.
class HeldShare {
 public:
  HeldShare() = default;
  /// Fills `memory`, which outlives this object. `sample_bytes`: the size of all samples; 0 where
  /// they differ.
  /// `reserve(begin, end)` is called before bytes [begin, end) of it are touched; empty: they are
  /// there.
  HeldShare(std::span<std::byte> memory, std::uint64_t sample_bytes,
            std::function<void(std::uint64_t, std::uint64_t)> reserve = {})
      : memory_(memory), sample_bytes_(sample_bytes), reserve_(std::move(reserve)) {}

  /// Room for the next sample, or for several: to be filled before the share is opened. Sample i of
  /// this share is the i-th that was taken here. Throws usage when there is too little room, or a
  /// sample has another size than all, and what `reserve` throws.
  std::span<std::byte> take(std::uint64_t bytes) { return take(std::span(&bytes, 1)); }
  std::span<std::byte> take(std::span<const std::uint64_t> bytes);
  /// Copies the next sample into the share. Throws as take() does.
  void append(std::span<const std::byte> sample);

  std::uint64_t samples() const { return samples_; }
  std::uint64_t bytes() const { return used_; }
  std::uint64_t room() const { return memory_.size() - used_; }
  /// Where each sample ends; empty where all have one size.
  std::span<const std::uint64_t> ends() const { return ends_; }

 private:
  void back(std::uint64_t end);

  std::span<std::byte> memory_;
  std::uint64_t sample_bytes_ = 0;
  std::function<void(std::uint64_t, std::uint64_t)> reserve_;
  std::uint64_t backed_ = 0;
  std::uint64_t used_ = 0;
  std::uint64_t samples_ = 0;
  std::vector<std::uint64_t> ends_;
};

// Which fillings of the shares may be read, as one process knows it: two numbers that only grow.
//
//   opened     generations below it were filled by all ranks, and may be read
//   released   generations below it are not read any more by this rank
//
// Generation g lies in buffer g mod K. The reader waits until g is opened; whoever fills waits
// until g - K was released, and then meets the other ranks, before it writes into that buffer.

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
