// The epochs of a run whose order is new in each of them, one after the other, up to its limits.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "forebay/epoch_order.hpp"

namespace forebay {

struct RunEpoch {
  EpochOrder order;
  /// What was taken of it before, without a last segment with which it goes on.
  std::vector<Segment> before;
  std::uint64_t begin = 0;  ///< its first iteration, counted in the epoch
  std::uint64_t end = 0;    ///< behind the last one that is wanted
};

/// Where a run begins and ends.
struct RunLimits {
  OrderProgress start;
  std::uint64_t iterations = UINT64_MAX;  ///< from there on
  std::uint64_t epochs = UINT64_MAX;      ///< of the whole run
};

/// One thread at a time. Copies go on independently.
class RunEpochs {
 public:
  /// Throws as EpochOrder, for the first epoch.
  RunEpochs(OrderOptions options, RunLimits limits);

  /// The next epoch that has iterations; nothing at the end of the run.
  std::optional<RunEpoch> next();
  /// Deliveries that `drop` has left out in epochs that are over.
  std::uint64_t dropped() const { return dropped_; }

 private:
  OrderOptions options_;
  OrderProgress progress_;
  std::uint64_t left_;
  std::uint64_t epochs_;
  std::uint64_t dropped_ = 0;
  std::uint64_t to_drop_ = 0;  ///< once the present epoch is over
};

}  // namespace forebay
