// Bringing images to one shape before they are packed.
//
// Every output pixel is the average of the input area that it covers; where the image grows, the
// area is smaller than a pixel and values are interpolated linearly. Gray becomes color by
// repeating its channel, color becomes gray by the usual weights of the eye (0.299, 0.587, 0.114).
// Integer arithmetic only: the same result on every platform.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "format/codec/image.hpp"

namespace forebay {

/// An image that owns its pixels, in (channel, height, width) order.
struct Image {
  ImageShape shape;
  std::vector<std::byte> pixels;
};

/// A JPEG or PNG file as an image. Throws corrupt, unsupported.
Image decode_image(std::span<const std::byte> file);

/// `image` in `shape`. Throws usage when the channels are neither equal nor 1 and 3.
Image resize(Image image, const ImageShape& shape);

}  // namespace forebay
