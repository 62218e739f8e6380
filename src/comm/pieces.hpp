// Long runs of values, moved part by part.
#pragma once

#include <algorithm>
#include <cstddef>
#include <span>

namespace forebay {

/// Calls `move(piece)` for consecutive pieces of `whole`, each of at most `most` bytes: at least
/// one element.
template <typename Element, typename Move>
void in_pieces(std::span<Element> whole, std::size_t most, Move move) {
  const std::size_t elements = std::max<std::size_t>(1, most / sizeof(Element));
  for (std::size_t done = 0; done < whole.size(); done += elements) {
    move(whole.subspan(done, std::min(elements, whole.size() - done)));
  }
}

}  // namespace forebay
