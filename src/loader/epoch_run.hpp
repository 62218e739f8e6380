// A run whose order is new in every epoch: what it was agreed to be, and where it stands.
#pragma once

#include <optional>

#include "loader/delivery.hpp"
#include "loader/opened.hpp"
#include "loader/run_epochs.hpp"
#include "loader/state.hpp"

namespace forebay {

/// What all ranks know of it before anything is read.
struct EpochPlan {
  OrderOptions order;
  RunEpochs epochs;
  RunState begin;  ///< from which the run goes on
  std::uint64_t epoch_iterations = 0;
  double reuse_distance = 0;
};

/// Collective; all ranks fail together.
EpochPlan plan_epochs(const Opened& opened);

/// Moves samples that cannot wait where they are into `delivery` itself.
void copy_out(Delivery& delivery);

/// One thread at a time.
class EpochRun {
 public:
  EpochRun(EpochPlan plan, int order_rank)
      : epochs_(std::move(plan.epochs)),
        begin_(std::move(plan.begin)),
        rank_(order_rank),
        reuse_distance_(plan.reuse_distance) {}

  /// The pass of the next batch, where there is one; may go on to the next epoch.
  std::optional<BatchPass> next();
  /// Of the next batch. Where next() told of one.
  const EpochOrder& order() const { return epoch_->order; }
  Share share() const { return order().share(rank_, step_); }
  std::uint64_t iteration() const { return begin_.iterations + taken_; }
  /// The same, counted in the epoch.
  std::uint64_t step() const { return step_; }
  bool ends_epoch() const { return step_ + 1 == epoch_->end; }
  /// A draw of this rank as the consumer sees it; without its place in the batch, key and value.
  Sample sample_of(const Draw& drawn) const;
  /// `delivery` has the samples of the next batch: tells it the rest, and goes on to the next.
  void advance(Delivery& delivery, const BatchPass& pass);

  /// After all that was taken.
  RunState state() const;
  void add_to(LoaderStatistics& all) const;

 private:
  RunEpochs epochs_;
  RunState begin_;
  int rank_;
  double reuse_distance_;
  std::optional<RunEpoch> epoch_;  ///< the present one; stays when the run has ended
  std::uint64_t step_ = 0;         ///< the next iteration, counted in the epoch
  std::uint64_t taken_ = 0;        ///< iterations since `begin_`
};

}  // namespace forebay
