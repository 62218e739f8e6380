// What one rank loads into its share of the memory of all ranks, filling by filling: for its
// reading thread, which reads them in windows of some MB, and for who moves these into the share.
//
//   epoch 0                       |    epoch 1
//   |load 0     |load 1     |last |    |load 3 ...        one filling of the share each
//   |w 0 |w 1 |w2|w 3 |w 4 |w 5|        |w 6 |w 7 |..     windows of the stage
//
// A load that is shared serves draws of all ranks: all have the same number of these in an epoch,
// in the same order, whether or not they draw from it or have anything to load for it. Others hold
// what only their own rank draws, come last in an epoch, and differ in number.
#pragma once

#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "loader/buffer_walk.hpp"

namespace forebay {

struct Load {
  /// Its epoch; empty where data are loaded once for all epochs.
  std::shared_ptr<const RunEpoch> epoch;
  bool shared = false;
  /// Draws of the rank that are served by it, of those that the run wants.
  std::uint64_t first = 0;
  std::uint64_t count = 0;
  std::vector<Run> runs;      ///< of samples: in the share one behind the other
  std::uint64_t samples = 0;  ///< of all runs
  std::uint64_t begin = 0;    ///< windows
  std::uint64_t end = 0;
  bool last = false;  ///< no load: the epoch has no more for this rank
};

/// Thread-safe.
class LoadList final : public ReadingList {
 public:
  /// Loads of `rank` in all epochs. `window_samples`: at most so many are read together.
  LoadList(RunEpochs epochs, int rank, std::uint64_t window_samples);
  /// One load: `held`.
  LoadList(Run held, std::uint64_t window_samples);

  /// Load `number`, from what was not forgotten on; nothing behind the end of the run. At the end
  /// of each epoch comes one that is the `last`.
  std::shared_ptr<const Load> at(std::uint64_t number);
  /// Loads below `number` are not asked for any more.
  void forget(std::uint64_t number);
  /// Samples in `window` of `load`, and its first place in the load.
  Run window(const Load& load, std::uint64_t window) const;

  std::uint64_t iterations(std::uint64_t window) override;
  std::vector<SampleRun> runs(const WindowPart& part) override;

 private:
  void extend();
  void add(Load load);
  std::shared_ptr<const Load> load_with(std::uint64_t window);

  std::mutex mutex_;
  std::optional<BufferWalk> walk_;
  std::uint64_t window_samples_;
  bool in_epoch_ = false;
  bool ended_ = false;
  bool no_more_windows_ = false;
  std::uint64_t windows_ = 0;         ///< so far
  std::uint64_t windows_before_ = 0;  ///< the present epoch
  Numbered<Load> loads_;
};

}  // namespace forebay
