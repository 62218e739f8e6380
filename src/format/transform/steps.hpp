// The steps of a transform, what they do to the shape of an image, and their text form.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "forebay/dataset.hpp"
#include "forebay/error.hpp"
#include "forebay/transform.hpp"
#include "format/codec/image.hpp"

namespace forebay {

struct Resize {
  std::uint32_t height = 0;
  std::uint32_t width = 0;
  std::uint32_t shorter = 0;  ///< instead of the two
};
struct Crop {
  std::uint32_t height = 0;
  std::uint32_t width = 0;
  bool random = false;
};
struct RandomResizedCrop {
  std::uint32_t height = 0;
  std::uint32_t width = 0;
  double least_area = 0.08, most_area = 1;
  double least_aspect = 0.75, most_aspect = 4.0 / 3;
};
struct Flip {
  bool vertical = false;
  double probability = 0.5;
};
struct Pad {
  std::uint32_t by = 0;
};
enum class Channels : std::uint8_t { gray, rgb, swap };
struct ToFloat {};
struct Cast {
  ElementType type = ElementType::f32;
};
struct Normalize {
  std::vector<float> mean, std;  ///< both of 1 or 3
};

using Step =
    std::variant<Resize, Crop, RandomResizedCrop, Flip, Pad, Channels, ToFloat, Cast, Normalize>;

struct TransformSteps {
  std::string field;
  bool from_hwc = false;
  bool full_decode = false;
  /// Of image files: what the text says, and no transparency where a step gives channels.
  ImageChoices images;
  std::vector<Step> steps;
  bool to_hwc = false;
  /// From here on steps change values alone: one pass does them all.
  std::size_t tail = 0;
  /// What the tail makes of a byte, for each of three channels: 3 * 256 numbers of type
  /// `table_type`. Empty if the tail is not of bytes.
  std::vector<std::byte> table;
  ElementType table_type = ElementType::u8;
};

const TransformSteps& steps_of(const Transform& transform);

/// Throws usage naming the step.
TransformSteps parse_steps(std::string_view text);
std::string to_text(const TransformSteps& steps);
std::string to_text(const Step& step);

/// The shape and type of an image between steps; 0 is not known.
struct ImageState {
  std::uint32_t channels = 0;
  std::uint32_t height = 0;
  std::uint32_t width = 0;
  ElementType type = ElementType::u8;

  bool fixed() const { return channels != 0 && height != 0 && width != 0; }
  std::uint64_t elements() const { return std::uint64_t{channels} * height * width; }
};

std::string to_string(const ImageState& state);

/// `state` after `step`. Throws an Error of `kind` that names both when they do not fit, or when
/// the image would exceed kMaxImageBytes.
void advance(ImageState& state, const Step& step, ErrorKind kind);
/// After all steps.
ImageState after(const TransformSteps& steps, ImageState state, ErrorKind kind);

/// Throws usage where pixels are numbers of a palette and a step would average them.
void require_no_average(const TransformSteps& steps, const ImageChoices& images);

/// The height and width that `resize` makes of those of `state`.
ImageState resized(const Resize& resize, ImageState state);

bool is_floating(ElementType type);

}  // namespace forebay
