// What a root is going to do for its first whole window, without doing it: for --explain.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "format/data_set.hpp"
#include "read/reading_list.hpp"

namespace forebay {

struct ReadOutline {
  std::uint64_t window_samples = 0;     ///< of the root
  std::uint64_t window_iterations = 0;  ///< C; 0 in orders that are read buffer by buffer
  std::uint64_t extents = 0;            ///< before they are joined
  std::uint64_t reads = 0;              ///< after
  std::uint64_t bytes = 0;
  std::uint64_t largest_read = 0;
  std::uint64_t gap_bytes = 0;     ///< read and not needed
  std::uint64_t value_bytes = 0;   ///< judged by the first value of the data set
  std::uint64_t buffer_bytes = 0;  ///< room that a root has for a window
  std::uint64_t index_bytes = 0;

  double amplification() const;
};

/// Of reading `runs` of `data`, without iterations, value and buffer bytes, which are the caller's.
/// Local. Throws what planning throws.
ReadOutline outline_of_runs(std::span<const SampleRun> runs, const DataSet& data,
                            std::uint64_t gap_limit);

/// For people, a line a fact; and one JSON object.
std::string to_text(const ReadOutline& outline);
std::string to_json(const ReadOutline& outline);

}  // namespace forebay
