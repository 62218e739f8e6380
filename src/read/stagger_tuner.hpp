// How many roots should read at once? Tried out in the first turns: all R, R/2, R/4, ... 1.
#pragma once

#include <cstdint>
#include <vector>

namespace forebay {

/// Pure: the choice depends on the figures alone.
class StaggerTuner {
 public:
  /// Each n is tried for `turns_per_trial` turns, after one turn that does not count: caches and
  /// buffers are empty in the first.
  explicit StaggerTuner(int roots, int turns_per_trial = 2);

  /// For the next turn.
  int group() const { return settled() ? best_ : groups_[trial_]; }
  bool settled() const { return trial_ == groups_.size(); }

  /// What all roots together have read in a turn, and how long the slowest was waiting and reading.
  void add_turn(std::uint64_t bytes, double seconds);
  /// Ends the trials: all read at once.
  void stop();

 private:
  void end_trial();

  std::vector<int> groups_;  ///< to try, descending
  int turns_per_trial_;
  bool warmed_up_ = false;
  std::size_t trial_ = 0;
  int turns_ = 0;  ///< of the trial
  std::uint64_t bytes_ = 0;
  double seconds_ = 0;
  int best_;
  double best_rate_ = 0;
};

}  // namespace forebay
