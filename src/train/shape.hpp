// The extents of one sample, and which of them is that of the channels.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace forebay {

/// Slowest first: channel, height, width of an image.
using Shape = std::vector<std::uint64_t>;

/// "3x32x32"
std::string to_string(const Shape& shape);

/// 1 for an empty shape. Shapes come from a schema, whose product fits 64 bits.
std::uint64_t elements_of(const Shape& shape);

/// Networks over space or time take channels in front (12x128x128x128) as well as behind
/// (128x128x128x12, as the papers' files have them). A cube has three equal sides, and a series is
/// longer than it has channels; where that leaves it open, channels are behind.
/// Throws unsupported when `shape` is not that of channels over `axes` axes, 1 or 3.
bool channels_first(const Shape& shape, int axes);

/// The same values with channels in front.
Shape with_channels_first(const Shape& shape, int axes);

}  // namespace forebay
