#include "read/reading_list.hpp"

#include <algorithm>

namespace forebay {

std::uint64_t StridedList::iterations(std::uint64_t window) {
  const std::uint64_t all = plan_->iterations();
  const std::uint64_t windows = end_ / all + (end_ % all > 0 ? 1 : 0);
  return window < windows ? std::min(all, end_ - window * all) : 0;
}

std::vector<SampleRun> StridedList::runs(const WindowPart& part) {
  return sample_runs(plan_->order(), plan_->pieces(root_, part));
}

std::vector<SampleRun> sample_runs(const StridedOrder& order, std::span<const Piece> pieces) {
  std::vector<SampleRun> runs;
  for (const Piece& piece : pieces) {
    for (std::uint64_t done = 0; done < piece.count;) {
      const std::uint64_t position = piece.position + done;
      const std::uint64_t sample = order.sample(position);
      const std::uint64_t count =
          std::min({piece.count - done, order.entries() - sample, order.consecutive(position)});
      runs.push_back({.sample = sample, .count = count, .entry = piece.entry + done});
      done += count;
    }
  }
  return runs;
}

}  // namespace forebay
