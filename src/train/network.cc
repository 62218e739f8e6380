#include "train/network.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <numeric>

#include "forebay/error.hpp"

namespace forebay {

std::string to_string(const Shape& shape) { return fmt::format("{}", fmt::join(shape, "x")); }

std::uint64_t elements_of(const Shape& shape) {
  return std::accumulate(shape.begin(), shape.end(), std::uint64_t{1}, std::multiplies<>());
}

bool channels_first(const Shape& shape, int axes) {
  const bool fits = shape.size() == static_cast<std::size_t>(axes) + 1 &&
                    std::ranges::find(shape, 0U) == shape.end();
  if (axes == 1 && fits) return shape[0] < shape[1];
  if (axes == 3 && fits) {
    if (shape[0] == shape[1] && shape[1] == shape[2]) return false;
    if (shape[1] == shape[2] && shape[2] == shape[3]) return true;
  }
  throw Error(ErrorKind::unsupported,
              fmt::format("samples of {} are no {}", to_string(shape),
                          axes == 1 ? "series of channels" : "cubes of channels"),
              axes == 1 ? "give samples of time x channels, like 1600x3"
                        : "give samples of side x side x side x channels, like 128x128x128x12");
}

Shape with_channels_first(const Shape& shape, int axes) {
  Shape moved = shape;
  if (!channels_first(shape, axes)) std::rotate(moved.begin(), moved.end() - 1, moved.end());
  return moved;
}

}  // namespace forebay
