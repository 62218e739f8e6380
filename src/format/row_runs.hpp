// Stretches of rows that follow each other, in an ascending list.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace forebay {

/// Calls run(first position in `rows`, first row, count) for each stretch.
template <typename Run>
void for_each_run(std::span<const std::uint64_t> rows, Run&& run) {
  for (std::size_t begin = 0; begin < rows.size();) {
    std::size_t end = begin + 1;
    while (end < rows.size() && rows[end] == rows[end - 1] + 1) ++end;
    run(begin, rows[begin], static_cast<std::uint64_t>(end - begin));
    begin = end;
  }
}

}  // namespace forebay
