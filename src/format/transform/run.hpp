// Doing the steps of a transform to one image.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "format/codec/image_reader.hpp"
#include "format/transform/pixels.hpp"
#include "format/transform/steps.hpp"

namespace forebay {

/// The image that a field of channel, height, width (`hwc`: height, width, channel) or of height
/// and width is. Throws usage when it is none.
ImageShape image_shape_of(const Field& field, bool hwc);
/// The shape of an image and its type, as the steps see it.
ImageState state_of(const ImageShape& shape);
/// `shape`, that of an image file. Throws corrupt when such an image cannot be transformed.
const ImageShape& checked_file(const ImageShape& shape);
/// The field that comes out, if all is known.
Field field_of(const ImageState& state, bool hwc, const std::string& name);

/// `output` is what has to come out, `out` has exactly its bytes. Throws corrupt when something
/// else would, or a step does not fit the image. Memory to work in is the thread's.
void run_on_file(const TransformSteps& steps, ImageReader& file, std::uint64_t seed,
                 const Field& output, std::span<std::byte> out);
void run_on_pixels(const TransformSteps& steps, const StoredPixels& pixels, std::uint64_t seed,
                   const Field& output, std::span<std::byte> out);

// The tail of a transform: steps that change values alone, and the order of the output, in one
// pass.
//
// Bytes go through a table that was made beforehand: whatever the steps are, they cost one look-up
// a value. Floats are brought row by row through loops that the compiler makes vectors of.

/// Sets `tail`, and `table` with its type, from the other members.
void prepare_tail(TransformSteps& steps);

/// Does step `step`, which is of the tail's kind, to floats of channel `channel`; all but cast to
/// bytes, and to types that are computed as floats.
void apply_values(const Step& step, std::size_t channel, std::span<float> values);
/// The same to all channels of an image of floats. `row` is memory to work in.
void apply_to_pixels(const Step& step, const PixelView& image, std::vector<float>& row);
bool changes_values_only(const Step& step);

/// Writes `image` through the tail of `steps` as numbers of `type`. `row` is memory to work in.
void write_output(const TransformSteps& steps, const PixelView& image, ElementType type,
                  std::span<std::byte> out, std::vector<float>& row);

}  // namespace forebay
