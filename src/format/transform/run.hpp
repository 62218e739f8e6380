// Doing the steps of a transform to one image.
#pragma once

#include <cstdint>
#include <span>

#include "format/codec/image_reader.hpp"
#include "format/transform/pixels.hpp"
#include "format/transform/steps.hpp"

namespace forebay {

/// The image that a field of channel, height, width (`hwc`: height, width, channel) or of height
/// and width is. Throws usage when it is none.
ImageShape image_shape_of(const Field& field, bool hwc);
/// The shape of an image and its type, as the steps see it.
ImageState state_of(const ImageShape& shape, ElementType type);
/// The field that comes out, if all is known.
Field field_of(const ImageState& state, bool hwc, const std::string& name);

/// `output` is what has to come out, `out` has exactly its bytes. Throws corrupt when something
/// else would, or a step does not fit the image. Memory to work in is the thread's.
void run_on_file(const TransformSteps& steps, ImageReader& file, std::uint64_t seed,
                 const Field& output, std::span<std::byte> out);
void run_on_pixels(const TransformSteps& steps, const StoredPixels& pixels, std::uint64_t seed,
                   const Field& output, std::span<std::byte> out);

}  // namespace forebay
