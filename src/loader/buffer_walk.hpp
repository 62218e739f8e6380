// The buffers of an order that one rank loads, over all epochs of a run, and as what a reader reads
// them.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <vector>

#include "loader/run_epochs.hpp"
#include "read/reading_list.hpp"

namespace forebay {

/// The run's last draw of `rank` in `epoch`, plus one.
std::uint64_t wanted_draws(const RunEpoch& epoch, int rank);

/// `count` samples of `loads`, from the one at place `first` on, sorted by sample: near to how they
/// lie in the file. Their entries count from 0.
std::vector<SampleRun> runs_of(const std::vector<Run>& loads, std::uint64_t first,
                               std::uint64_t count);

/// Samples of all loads.
std::uint64_t samples_in(const std::vector<Run>& loads);

/// The buffers of one rank, in one epoch after the other. One thread at a time.
class RankBuffers {
 public:
  explicit RankBuffers(int rank) : rank_(rank) {}

  void begin(std::shared_ptr<const RunEpoch> epoch);
  /// The next buffer of the epoch that the run wants: those that are shared as long as any rank
  /// does.
  std::optional<Buffer> next();

  /// The present epoch, and the first and last one of the rank's draws in it that the run wants.
  const std::shared_ptr<const RunEpoch>& epoch() const { return epoch_; }
  int rank() const { return rank_; }
  std::uint64_t begin_draw() const { return begin_draw_; }
  std::uint64_t end_draw() const { return end_draw_; }
  /// Who gets nothing of such an epoch gets nothing of any other.
  bool is_whole() const { return epoch_->before.empty() && epoch_->begin == 0; }

 private:
  std::uint64_t last_wanted_round() const;

  int rank_;
  std::shared_ptr<const RunEpoch> epoch_;
  std::optional<Buffer> buffer_;  ///< the one before
  std::uint64_t begin_draw_ = 0;
  std::uint64_t end_draw_ = 0;
  std::optional<std::uint64_t> last_round_;  ///< that any rank wants, once it is asked for
};

/// The same with the epochs of a run.
class BufferWalk : public RankBuffers {
 public:
  BufferWalk(RunEpochs epochs, int rank) : RankBuffers(rank), epochs_(std::move(epochs)) {}

  /// Goes on to the next epoch; false at the end of the run.
  bool begin_epoch();

 private:
  RunEpochs epochs_;
};

/// Numbered items, of which the first ones are forgotten.
template <typename Item>
class Numbered {
 public:
  std::uint64_t end() const { return base_ + items_.size(); }
  void push(Item item) { items_.push_back(std::make_shared<const Item>(std::move(item))); }
  std::shared_ptr<const Item> at(std::uint64_t number) const {
    return number - base_ < items_.size() ? items_[number - base_] : nullptr;
  }
  void forget(std::uint64_t number) {
    for (; base_ < number && !items_.empty(); ++base_) items_.pop_front();
  }
  const std::deque<std::shared_ptr<const Item>>& all() const { return items_; }

 private:
  std::uint64_t base_ = 0;  ///< number of the first that is kept
  std::deque<std::shared_ptr<const Item>> items_;
};

}  // namespace forebay
