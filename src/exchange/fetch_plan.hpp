// One fetch, taken apart: which samples are copied out of memory that this process sees, and which
// pieces have to be read from other nodes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "comm/remote_memory.hpp"

namespace forebay {

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

}  // namespace forebay
