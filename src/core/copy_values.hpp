// Copies between stretches of memory.
#pragma once

#include <algorithm>
#include <ranges>

namespace forebay {

/// Copies `from` to where `to` begins, which must have room for it; they must not overlap.
/// (std::ranges::copy between spans is a loop over elements in GCC 12, several times slower.)
template <std::ranges::contiguous_range From, std::ranges::contiguous_range To>
void copy_values(const From& from, To&& to) {
  std::copy_n(std::ranges::data(from), std::ranges::size(from), std::ranges::data(to));
}

}  // namespace forebay
