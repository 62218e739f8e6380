#include "read/piece_reader.hpp"

#include <algorithm>

namespace forebay {

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
