// What each step does to the shape and the type of an image.
#include <fmt/format.h>

#include <algorithm>

#include "format/codec/image.hpp"
#include "format/transform/steps.hpp"

namespace forebay {
namespace {

class Advance {
 public:
  Advance(ImageState& state, const Step& step, ErrorKind kind)
      : state_(state), step_(step), kind_(kind) {}

  void operator()(const Resize& s) const { state_ = resized(s, state_); }
  void operator()(const Crop& s) const {
    const bool known = state_.height != 0 && state_.width != 0;
    if (known && (s.height > state_.height || s.width > state_.width)) {
      fail("is larger than the image", "resize or pad before it");
    }
    state_.height = s.height;
    state_.width = s.width;
  }
  void operator()(const RandomResizedCrop& s) const {
    state_.height = s.height;
    state_.width = s.width;
  }
  void operator()(const Flip&) const {}
  void operator()(const Pad& s) const {
    if (state_.height != 0) state_.height += 2 * s.by;
    if (state_.width != 0) state_.width += 2 * s.by;
  }
  void operator()(Channels s) const {
    if (s == Channels::swap && state_.channels == 1) {
      fail("has no red and blue to swap", "leave it out, or put rgb before it");
    }
    if (s != Channels::swap) state_.channels = s == Channels::gray ? 1 : 3;
  }
  void operator()(ToFloat) const {
    if (state_.type != ElementType::u8) {
      fail("divides bytes by 255, and these are none", "use cast=f32 and normalize instead");
    }
    state_.type = ElementType::f32;
  }
  void operator()(Cast s) const { state_.type = s.type; }
  void operator()(const Normalize& s) const {
    if (!is_floating(state_.type)) {
      fail("needs numbers with fractions",
           "put to-float (or cast=f32, which does not scale) first");
    }
    if (state_.channels == 1 && (s.mean.size() != 1 || s.std.size() != 1)) {
      fail("has numbers for 3 channels", "give one mean and one std, or put rgb before it");
    }
  }

 private:
  [[noreturn]] void fail(std::string_view what, std::string_view remedy) const {
    throw Error(
        kind_,
        fmt::format("step '{}' of the transform {}: {}", to_text(step_), what, to_string(state_)),
        std::string(remedy));
  }

  ImageState& state_;
  const Step& step_;
  ErrorKind kind_;
};

std::string side_text(std::uint32_t side) { return side == 0 ? "?" : std::to_string(side); }

}  // namespace

bool is_floating(ElementType type) {
  return type == ElementType::f16 || type == ElementType::f32 || type == ElementType::f64;
}

std::string to_string(const ImageState& state) {
  return fmt::format("{}[{}x{}x{}]", to_string(state.type), side_text(state.channels),
                     side_text(state.height), side_text(state.width));
}

void require_no_average(const TransformSteps& steps, const ImageChoices& images) {
  if (!images.indices) return;
  for (const Step& step : steps.steps) {
    if (!std::holds_alternative<Resize>(step) && !std::holds_alternative<RandomResizedCrop>(step)) {
      continue;
    }
    throw Error(ErrorKind::usage,
                fmt::format("step '{}' of the transform averages pixels, and with palette=index "
                            "they are numbers of classes",
                            to_text(step)),
                "crop, flip or pad instead, or read the palette's colors");
  }
}

ImageState resized(const Resize& resize, ImageState state) {
  if (resize.shorter == 0) {
    state.height = resize.height;
    state.width = resize.width;
    return state;
  }
  if (state.height == 0 || state.width == 0) return state;
  const std::uint64_t height = state.height, width = state.width;
  const std::uint64_t shorter = std::min(height, width);
  // Sides fit 32 bits and the target 16, so products fit; what is far too large stays that.
  const auto scaled = [&](std::uint64_t side) {
    return static_cast<std::uint32_t>(
        std::min<std::uint64_t>(side * resize.shorter / shorter, kMaxImageBytes));
  };
  state.height = scaled(height);
  state.width = scaled(width);
  return state;
}

void advance(ImageState& state, const Step& step, ErrorKind kind) {
  std::visit(Advance(state, step, kind), step);
  const std::uint64_t channels = std::max(state.channels, 1U);
  const std::uint64_t most = kMaxImageBytes / channels / std::max(state.width, 1U);
  if (state.height <= most) return;
  throw Error(kind,
              fmt::format("after step '{}' of the transform the image would be {}: more than {} "
                          "numbers",
                          to_text(step), to_string(state), kMaxImageBytes),
              "crop or resize to a smaller size");
}

ImageState after(const TransformSteps& steps, ImageState state, ErrorKind kind) {
  for (const Step& step : steps.steps) advance(state, step, kind);
  return state;
}

}  // namespace forebay
