// The text form of a transform; forebay/transform.hpp has its grammar.
#include <fmt/format.h>

#include <array>
#include <charconv>
#include <cmath>
#include <optional>

#include "core/number_text.hpp"
#include "format/transform/steps.hpp"

namespace forebay {
namespace {

constexpr std::uint64_t kMostSide = 65535;

/// Cuts off the text up to the next `separator`, and that.
std::string_view take_part(std::string_view& text, char separator) {
  const std::size_t end = std::min(text.find(separator), text.size());
  const std::string_view part = text.substr(0, end);
  text.remove_prefix(std::min(end + 1, text.size()));
  return part;
}

/// One step of the text, while it is read.
struct StepText {
  std::string_view whole;
  std::string_view name;
  std::optional<std::string_view> value;

  [[noreturn]] void fail(std::string_view takes) const {
    throw Error(ErrorKind::usage, fmt::format("step '{}' of the transform does not read", whole),
                fmt::format("write it as {}", takes));
  }
  std::string_view needed(std::string_view takes) const {
    if (!value || value->empty()) fail(takes);
    return *value;
  }
  void need_none() const {
    if (value) fail(name);
  }
};

double number(std::string_view text, const StepText& step, std::string_view takes) {
  double value = 0;
  const auto [end, error] =
      std::from_chars(text.data(), text.data() + text.size(), value, std::chars_format::fixed);
  const bool whole = error == std::errc{} && end == text.data() + text.size();
  if (!whole || !std::isfinite(value)) step.fail(takes);
  return value;
}

struct Range {
  double least, most;
};

Range range(std::string_view text, const StepText& step, std::string_view takes) {
  const double least = number(take_part(text, '-'), step, takes);
  return {least, number(text, step, takes)};
}

std::uint32_t side(std::string_view text, const StepText& step) {
  return static_cast<std::uint32_t>(parse_count(text, step.whole, 1, kMostSide));
}

/// "HxW", or "S" for both.
template <typename Sized>
void read_size(std::string_view text, const StepText& step, Sized& sized) {
  const std::string_view height = take_part(text, 'x');
  sized.height = side(height, step);
  sized.width = text.data() == height.data() + height.size() ? sized.height : side(text, step);
}

Step parse_resize(const StepText& step) {
  const std::string_view value = step.needed("resize=S or resize=HxW");
  Resize resize;
  if (value.find('x') == std::string_view::npos) {
    resize.shorter = side(value, step);
  } else {
    read_size(value, step, resize);
  }
  return resize;
}

Step parse_crop(const StepText& step) {
  constexpr std::string_view kTakes = "crop=HxW, or with ':center' or ':random' behind";
  std::string_view value = step.needed(kTakes);
  Crop crop;
  read_size(take_part(value, ':'), step, crop);
  if (value == "random") {
    crop.random = true;
  } else if (!value.empty() && value != "center") {
    step.fail(kTakes);
  }
  return crop;
}

Step parse_random_resized_crop(const StepText& step) {
  constexpr std::string_view kTakes =
      "random-resized-crop=HxW:A-B:C-D with areas 0 < A <= B <= 1 and aspects 0.01 <= C <= D <= "
      "100";
  std::string_view value = step.needed(kTakes);
  RandomResizedCrop crop;
  read_size(take_part(value, ':'), step, crop);
  if (!value.empty()) {
    const Range area = range(take_part(value, ':'), step, kTakes);
    if (!(area.least > 0 && area.least <= area.most && area.most <= 1)) step.fail(kTakes);
    crop.least_area = area.least;
    crop.most_area = area.most;
  }
  if (!value.empty()) {
    const Range aspect = range(value, step, kTakes);
    const bool good = aspect.least >= 0.01 && aspect.least <= aspect.most && aspect.most <= 100;
    if (!good) step.fail(kTakes);
    crop.least_aspect = aspect.least;
    crop.most_aspect = aspect.most;
  }
  return crop;
}

Step parse_flip(const StepText& step) {
  constexpr std::string_view kTakes = "flip=P or vflip=P with 0 <= P <= 1";
  Flip flip{.vertical = step.name == "vflip"};
  if (step.value) flip.probability = number(*step.value, step, kTakes);
  if (!(flip.probability >= 0 && flip.probability <= 1)) step.fail(kTakes);
  return flip;
}

Step parse_pad(const StepText& step) {
  return Pad{
      static_cast<std::uint32_t>(parse_count(step.needed("pad=N"), step.whole, 0, kMostSide))};
}

Step parse_channels(const StepText& step) {
  step.need_none();
  if (step.name == "gray") return Channels::gray;
  return step.name == "rgb" ? Channels::rgb : Channels::swap;
}

Step parse_to_float(const StepText& step) {
  step.need_none();
  return ToFloat{};
}

Step parse_cast(const StepText& step) { return Cast{parse_element_type(step.needed("cast=TYPE"))}; }

std::vector<float> channel_numbers(std::string_view text, const StepText& step,
                                   std::string_view takes) {
  std::vector<float> numbers;
  for (bool more = true; more;) {
    more = text.find(':') != std::string_view::npos;
    numbers.push_back(static_cast<float>(number(take_part(text, ':'), step, takes)));
    if (!std::isfinite(numbers.back())) step.fail(takes);
  }
  if (numbers.size() != 1 && numbers.size() != 3) step.fail(takes);
  return numbers;
}

Step parse_normalize(const StepText& step) {
  constexpr std::string_view kTakes =
      "normalize=MEAN/STD or normalize=R:G:B/R:G:B, with no STD of 0";
  std::string_view value = step.needed(kTakes);
  if (value.find('/') == std::string_view::npos) step.fail(kTakes);
  Normalize normalize;
  normalize.mean = channel_numbers(take_part(value, '/'), step, kTakes);
  normalize.std = channel_numbers(value, step, kTakes);
  for (const float std : normalize.std) {
    if (std == 0) step.fail(kTakes);
  }
  return normalize;
}

struct StepName {
  std::string_view name;
  Step (*parse)(const StepText&);
};

constexpr std::array<StepName, 12> kSteps{{{"resize", parse_resize},
                                           {"crop", parse_crop},
                                           {"random-resized-crop", parse_random_resized_crop},
                                           {"flip", parse_flip},
                                           {"vflip", parse_flip},
                                           {"pad", parse_pad},
                                           {"gray", parse_channels},
                                           {"rgb", parse_channels},
                                           {"swap", parse_channels},
                                           {"to-float", parse_to_float},
                                           {"cast", parse_cast},
                                           {"normalize", parse_normalize}}};

constexpr std::size_t kMostSteps = 64;

Step parse_step(const StepText& step) {
  std::string known = "from, full-decode, orientation, palette";
  for (const StepName& candidate : kSteps) {
    if (candidate.name == step.name) return candidate.parse(step);
    known += fmt::format(", {}", candidate.name);
  }
  throw Error(ErrorKind::usage, fmt::format("'{}' is not a step of a transform", step.whole),
              fmt::format("use one of {}, layout", known));
}

bool is_hwc(const StepText& step) {
  constexpr std::string_view kTakes = "from=hwc or layout=hwc; chw is the default";
  const std::string_view value = step.needed(kTakes);
  if (value != "hwc" && value != "chw") step.fail(kTakes);
  return value == "hwc";
}

/// Cuts "FIELD:" off, which ends before any other sign of a step.
std::string take_field(std::string_view& text) {
  const std::size_t end = text.find_first_of(":=,");
  if (end == std::string_view::npos || text[end] != ':') return {};
  const std::string field(text.substr(0, end));
  if (parse_schema(fmt::format("{}:u8[]", field)).fields.size() != 1) return {};
  text.remove_prefix(end + 1);
  return field;
}

/// What stands outside of the list: true if `step` was that.
bool read_frame(const StepText& step, std::string_view rest, TransformSteps& steps) {
  if (step.name == "layout") {
    steps.to_hwc = is_hwc(step);
    if (!rest.empty()) step.fail("the last step");
    return true;
  }
  const bool of_images = step.name == "orientation" || step.name == "palette";
  if (step.name != "from" && step.name != "full-decode" && !of_images) return false;
  if (!steps.steps.empty()) step.fail("one of the first steps");
  if (of_images) {
    if (!steps.images.read(step.whole)) step.fail("orientation=stored or palette=index");
    return true;
  }
  if (step.name == "from") {
    steps.from_hwc = is_hwc(step);
  } else {
    step.need_none();
    steps.full_decode = true;
  }
  return true;
}

}  // namespace

TransformSteps parse_steps(std::string_view text) {
  TransformSteps steps;
  if (text.empty()) return steps;
  steps.field = take_field(text);
  for (bool more = true; more;) {
    more = text.find(',') != std::string_view::npos;
    StepText step{.whole = take_part(text, ','), .name = {}, .value = {}};
    std::string_view value = step.whole;
    step.name = take_part(value, '=');
    if (step.name.size() < step.whole.size()) step.value = value;
    if (read_frame(step, text, steps)) continue;
    if (steps.steps.size() == kMostSteps) step.fail("64 steps or fewer");
    steps.steps.push_back(parse_step(step));
  }
  return steps;
}

}  // namespace forebay
