// Steps as the text that parse.cc reads.
#include <fmt/format.h>

#include <array>
#include <charconv>

#include "format/transform/steps.hpp"

namespace forebay {
namespace {

std::string plain(double value) {
  std::array<char, 400> text;
  const auto end = std::to_chars(text.begin(), text.end(), value, std::chars_format::fixed).ptr;
  return {text.begin(), end};
}

std::string plain(const std::vector<float>& values) {
  std::string text;
  for (const float value : values) {
    std::array<char, 100> digits;
    const auto end =
        std::to_chars(digits.begin(), digits.end(), value, std::chars_format::fixed).ptr;
    if (!text.empty()) text += ':';
    text.append(digits.begin(), end);
  }
  return text;
}

struct StepWriter {
  std::string operator()(const Resize& s) const {
    return s.shorter > 0 ? fmt::format("resize={}", s.shorter)
                         : fmt::format("resize={}x{}", s.height, s.width);
  }
  std::string operator()(const Crop& s) const {
    return fmt::format("crop={}x{}{}", s.height, s.width, s.random ? ":random" : "");
  }
  std::string operator()(const RandomResizedCrop& s) const {
    const RandomResizedCrop usual;
    std::string text = fmt::format("random-resized-crop={}x{}", s.height, s.width);
    const bool aspect = s.least_aspect != usual.least_aspect || s.most_aspect != usual.most_aspect;
    if (aspect || s.least_area != usual.least_area || s.most_area != usual.most_area) {
      text += fmt::format(":{}-{}", plain(s.least_area), plain(s.most_area));
    }
    if (aspect) text += fmt::format(":{}-{}", plain(s.least_aspect), plain(s.most_aspect));
    return text;
  }
  std::string operator()(const Flip& s) const {
    const std::string_view name = s.vertical ? "vflip" : "flip";
    return s.probability == Flip().probability ? std::string(name)
                                               : fmt::format("{}={}", name, plain(s.probability));
  }
  std::string operator()(const Pad& s) const { return fmt::format("pad={}", s.by); }
  std::string operator()(Channels s) const {
    return s == Channels::gray ? "gray" : s == Channels::rgb ? "rgb" : "swap";
  }
  std::string operator()(ToFloat) const { return "to-float"; }
  std::string operator()(Cast s) const { return fmt::format("cast={}", to_string(s.type)); }
  std::string operator()(const Normalize& s) const {
    return fmt::format("normalize={}/{}", plain(s.mean), plain(s.std));
  }
};

}  // namespace

std::string to_text(const Step& step) { return std::visit(StepWriter(), step); }

std::string to_text(const TransformSteps& steps) {
  std::string text;
  const auto add = [&text](const std::string& step) { text += (text.empty() ? "" : ",") + step; };
  if (steps.from_hwc) add("from=hwc");
  if (steps.full_decode) add("full-decode");
  if (!steps.images.upright) add("orientation=stored");
  if (steps.images.indices) add("palette=index");
  for (const Step& step : steps.steps) add(to_text(step));
  if (steps.to_hwc) add("layout=hwc");
  return steps.field.empty() ? text : fmt::format("{}:{}", steps.field, text);
}

}  // namespace forebay
