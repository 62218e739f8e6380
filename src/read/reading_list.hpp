// What a root reads, window by window: the one thing in which orders differ for whoever reads.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "core/non_copyable.hpp"
#include "read/window_plan.hpp"

namespace forebay {

/// Consecutive samples that go into consecutive entries of a window.
struct SampleRun {
  std::uint64_t sample = 0;
  std::uint64_t count = 0;
  std::uint64_t entry = 0;
};

/// Asked by the reading thread of one root, for windows in ascending order.
class ReadingList : private NonCopyable {
 public:
  virtual ~ReadingList() = default;

  /// How many iterations of `window` are wanted: its first ones; 0 behind the end of the run.
  virtual std::uint64_t iterations(std::uint64_t window) = 0;
  /// What the root reads for `part`.
  virtual std::vector<SampleRun> runs(const WindowPart& part) = 0;
};

/// Of a strided order: windows as its plan has them, up to iteration `end`.
class StridedList final : public ReadingList {
 public:
  /// `plan` is of the root's group, `root` its number there.
  StridedList(std::shared_ptr<const WindowPlan> plan, int root, std::uint64_t end)
      : plan_(std::move(plan)), root_(root), end_(end) {}

  std::uint64_t iterations(std::uint64_t window) override;
  std::vector<SampleRun> runs(const WindowPart& part) override;

 private:
  std::shared_ptr<const WindowPlan> plan_;
  int root_;
  std::uint64_t end_;
};

/// The samples of `pieces`: a piece is cut where it reaches over the end of the circular data set,
/// or stands for what is left of a partial window.
std::vector<SampleRun> sample_runs(const StridedOrder& order, std::span<const Piece> pieces);

}  // namespace forebay
