// The two image libraries behind image.hpp. Each reports errors by longjmp, so each lives in a file
// of its own whose jumping functions hold nothing that has a destructor.
#pragma once

#include "format/codec/image_reader.hpp"

namespace forebay {

/// Both read the header. Throw corrupt, unsupported.
std::unique_ptr<ImageReader> open_jpeg(std::span<const std::byte> file);
std::unique_ptr<ImageReader> open_png(std::span<const std::byte> file);

/// Throws corrupt unless the header's shape is within the limits, and equal to `expected` if given.
void check_image_shape(const ImageShape& found, const ImageShape* expected);

/// Throws usage unless `pixels` is an image of 1 or 3 channels and of that shape.
void check_encodable(const ImageShape& shape, std::span<const std::byte> pixels);

/// One row of interleaved pixels <-> row `y` of an image in (channel, height, width) order.
void split_row(std::span<const std::byte> row, const ImageShape& shape, std::uint32_t y,
               std::span<std::byte> pixels);
void join_row(std::span<const std::byte> pixels, const ImageShape& shape, std::uint32_t y,
              std::span<std::byte> row);

}  // namespace forebay
