#include "forebay/transform.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "format/codec/codecs.hpp"
#include "format/transform/run.hpp"

namespace forebay {
namespace {

std::shared_ptr<const TransformSteps> prepared(TransformSteps steps) {
  prepare_tail(steps);
  const bool channels = std::ranges::any_of(steps.steps, [](const Step& step) {
    const auto* given = std::get_if<Channels>(&step);
    return given != nullptr && *given != Channels::swap;
  });
  if (channels) steps.images = steps.images.with({.channels = ImageChannels::opaque});
  // As torchvision's ToTensor has it, white is 1.0 in images of any depth.
  steps.images.wide_bits = std::ranges::any_of(
      steps.steps, [](const Step& step) { return std::holds_alternative<ToFloat>(step); });
  require_no_average(steps, steps.images);
  return std::make_shared<const TransformSteps>(std::move(steps));
}

void require_bytes(const Field& field, std::size_t bytes, std::string_view what) {
  if (field.bytes() == bytes) return;
  throw Error(ErrorKind::usage, fmt::format("{} has {} bytes, {} needs {}", what, bytes,
                                            to_string(Schema{{field}}), field.bytes()));
}

}  // namespace

const TransformSteps& steps_of(const Transform& transform) { return *transform.steps_; }

Transform::Transform() : steps_(prepared({})) {}

Transform Transform::parse(std::string_view text) { return Transform(prepared(parse_steps(text))); }

std::string Transform::to_text() const { return forebay::to_text(*steps_); }
bool Transform::empty() const {
  return steps_->steps.empty() && !steps_->to_hwc && !steps_->from_hwc && !steps_->full_decode &&
         steps_->images == ImageChoices{};
}
const std::string& Transform::field() const { return steps_->field; }

Field Transform::output(const Field& input) const {
  const ImageState state = state_of(image_shape_of(input, steps_->from_hwc));
  return field_of(after(*steps_, state, ErrorKind::usage), steps_->to_hwc, input.name);
}

Field Transform::output_of_file(std::span<const std::byte> file) const {
  const ImageState state = state_of(checked_file(image_shape(file, steps_->images)));
  return field_of(after(*steps_, state, ErrorKind::usage), steps_->to_hwc, "image");
}

void Transform::apply(const Field& input, std::span<const std::byte> image, std::uint64_t seed,
                      std::span<std::byte> out) const {
  const Field field = output(input);
  require_bytes(input, image.size(), "the image");
  require_bytes(field, out.size(), "the memory for the output");
  run_on_pixels(*steps_,
                {.bytes = image,
                 .shape = image_shape_of(input, steps_->from_hwc),
                 .type = input.type,
                 .hwc = steps_->from_hwc},
                seed, field, out);
}

void Transform::apply_to_file(std::span<const std::byte> file, std::uint64_t seed,
                              std::span<std::byte> out) const {
  const auto reader = open_image(file, steps_->images);
  const ImageState state = state_of(checked_file(reader->shape()));
  const Field field = field_of(after(*steps_, state, ErrorKind::usage), steps_->to_hwc, "image");
  require_bytes(field, out.size(), "the memory for the output");
  run_on_file(*steps_, *reader, seed, field, out);
}

}  // namespace forebay
