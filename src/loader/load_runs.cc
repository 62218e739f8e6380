#include "loader/load_runs.hpp"

#include <algorithm>

namespace forebay {

std::vector<SampleRun> runs_of(const std::vector<Run>& loads, std::uint64_t first,
                               std::uint64_t count) {
  std::vector<SampleRun> runs;
  std::uint64_t place = 0;
  for (const Run& load : loads) {
    const std::uint64_t begin = std::max(place, first);
    const std::uint64_t end = std::min(place + load.count, first + count);
    if (begin < end) {
      runs.push_back(
          {.sample = load.first + (begin - place), .count = end - begin, .entry = begin - first});
    }
    place += load.count;
    if (place >= first + count) break;
  }
  std::ranges::sort(runs, {}, &SampleRun::sample);
  return runs;
}

std::uint64_t samples_in(const std::vector<Run>& loads) {
  std::uint64_t samples = 0;
  for (const Run& load : loads) samples += load.count;
  return samples;
}

}  // namespace forebay
