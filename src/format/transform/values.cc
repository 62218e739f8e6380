// Compiled with the optimizer's full effort and without fused operations (src/CMakeLists.txt).
#include "format/transform/run.hpp"

#include <cstring>

#include "core/half.hpp"

namespace forebay {
namespace {

constexpr std::size_t kTableChannels = 3;
constexpr std::size_t kByteValues = 256;

template <typename T>
void round_all(std::span<float> values) {
  for (float& value : values) value = static_cast<float>(rounded_to<T>(value));
}

template <typename T>
void store_rounded(std::span<const float> values, std::byte* out) {
  for (std::size_t i = 0; i < values.size(); ++i) {
    T value;
    if constexpr (std::is_floating_point_v<T>) {
      value = static_cast<T>(values[i]);
    } else {
      value = rounded_to<T>(values[i]);
    }
    std::memcpy(out + i * sizeof(T), &value, sizeof(T));
  }
}

void store(std::span<const float> values, ElementType type, std::byte* out) {
  if (type == ElementType::f16) return narrow_float16(values.data(), out, values.size());
  with_number(type, [&](auto number) { store_rounded<decltype(number)>(values, out); });
}

/// Floats are rounded when they are written.
void round_to_type(ElementType type, std::span<float> values) {
  if (is_floating(type)) return;
  with_number(type, [&](auto number) { round_all<decltype(number)>(values); });
}

class Apply {
 public:
  Apply(std::size_t channel, std::span<float> values) : channel_(channel), values_(values) {}

  void operator()(const ToFloat&) const {
    for (float& value : values_) value /= 255.0F;
  }
  void operator()(const Cast& cast) const { round_to_type(cast.type, values_); }
  void operator()(const Normalize& normalize) const {
    const float mean = of_channel(normalize.mean), std = of_channel(normalize.std);
    for (float& value : values_) value = (value - mean) / std;
  }
  template <typename Other>
  void operator()(const Other&) const {}

 private:
  float of_channel(const std::vector<float>& numbers) const {
    return numbers[numbers.size() == 1 ? 0 : channel_];
  }

  std::size_t channel_;
  std::span<float> values_;
};

void make_table(TransformSteps& steps) {
  // Of which type the values are by then does not depend on what they are now: bytes.
  ElementType type = ElementType::u8;
  for (std::size_t s = steps.tail; s < steps.steps.size(); ++s) {
    if (std::holds_alternative<ToFloat>(steps.steps[s])) type = ElementType::f32;
    if (const auto* cast = std::get_if<Cast>(&steps.steps[s])) type = cast->type;
  }
  steps.table_type = type;
  steps.table.resize(kTableChannels * kByteValues * size_of(type));
  for (std::size_t channel = 0; channel < kTableChannels; ++channel) {
    float values[kByteValues];
    for (std::size_t i = 0; i < kByteValues; ++i) values[i] = static_cast<float>(i);
    for (std::size_t s = steps.tail; s < steps.steps.size(); ++s) {
      apply_values(steps.steps[s], channel, values);
    }
    store(values, type, steps.table.data() + channel * kByteValues * size_of(type));
  }
}

/// `out` is aligned to anything.
template <typename T>
void look_up(const PixelView& image, const T* table, bool hwc, std::byte* out) {
  const std::size_t width = image.shape.width, height = image.shape.height;
  const std::size_t channels = image.shape.channels;
  const std::size_t step = (hwc ? channels : 1) * sizeof(T);
  for (std::size_t y = 0; y < height; ++y) {
    const std::uint8_t* in = image.row<std::uint8_t>(y);
    for (std::size_t c = 0; c < channels; ++c) {
      const T* of_channel = table + c * kByteValues;
      const std::size_t first = hwc ? y * width * channels + c : (c * height + y) * width;
      std::byte* to = out + first * sizeof(T);
      for (std::size_t x = 0; x < width; ++x) {
        std::memcpy(to + x * step, of_channel + in[x * channels + c], sizeof(T));
      }
    }
  }
}

void write_bytes(const TransformSteps& steps, const PixelView& image, std::byte* out) {
  const void* table = steps.table.data();
  switch (size_of(steps.table_type)) {
    case 1:
      return look_up(image, static_cast<const std::uint8_t*>(table), steps.to_hwc, out);
    case 2:
      return look_up(image, static_cast<const std::uint16_t*>(table), steps.to_hwc, out);
    case 4:
      return look_up(image, static_cast<const std::uint32_t*>(table), steps.to_hwc, out);
    default:
      return look_up(image, static_cast<const std::uint64_t*>(table), steps.to_hwc, out);
  }
}

/// A row of floats, one channel after the other in `row`, through all steps of the tail.
void run_tail(const TransformSteps& steps, const PixelView& image, std::size_t y,
              std::span<float> row) {
  const std::size_t width = image.shape.width, channels = image.shape.channels;
  const float* in = image.row<float>(y);
  for (std::size_t c = 0; c < channels; ++c) {
    const auto values = row.subspan(c * width, width);
    for (std::size_t x = 0; x < width; ++x) values[x] = in[x * channels + c];
    for (std::size_t s = steps.tail; s < steps.steps.size(); ++s) {
      apply_values(steps.steps[s], c, values);
    }
  }
}

void write_floats(const TransformSteps& steps, const PixelView& image, ElementType type,
                  std::byte* out, std::vector<float>& memory) {
  const std::size_t width = image.shape.width, height = image.shape.height;
  const std::size_t channels = image.shape.channels, values = width * channels;
  if (memory.size() < 2 * values) memory.resize(2 * values);
  const std::span<float> row(memory.data(), values), mixed(memory.data() + values, values);
  for (std::size_t y = 0; y < height; ++y) {
    run_tail(steps, image, y, row);
    if (!steps.to_hwc) {
      for (std::size_t c = 0; c < channels; ++c) {
        store(row.subspan(c * width, width), type, out + (c * height + y) * width * size_of(type));
      }
      continue;
    }
    for (std::size_t c = 0; c < channels; ++c) {
      for (std::size_t x = 0; x < width; ++x) mixed[x * channels + c] = row[c * width + x];
    }
    store(mixed, type, out + y * values * size_of(type));
  }
}

}  // namespace

bool changes_values_only(const Step& step) {
  return std::holds_alternative<ToFloat>(step) || std::holds_alternative<Cast>(step) ||
         std::holds_alternative<Normalize>(step);
}

void apply_values(const Step& step, std::size_t channel, std::span<float> values) {
  std::visit(Apply(channel, values), step);
}

void apply_to_pixels(const Step& step, const PixelView& image, std::vector<float>& row) {
  const std::size_t width = image.shape.width, channels = image.shape.channels;
  if (row.size() < width) row.resize(width);
  const std::span<float> values(row.data(), width);
  for (std::size_t y = 0; y < image.shape.height; ++y) {
    float* pixels = image.row<float>(y);
    for (std::size_t c = 0; c < channels; ++c) {
      for (std::size_t x = 0; x < width; ++x) values[x] = pixels[x * channels + c];
      apply_values(step, c, values);
      for (std::size_t x = 0; x < width; ++x) pixels[x * channels + c] = values[x];
    }
  }
}

void prepare_tail(TransformSteps& steps) {
  steps.tail = steps.steps.size();
  while (steps.tail > 0 && changes_values_only(steps.steps[steps.tail - 1])) --steps.tail;
  make_table(steps);
}

void write_output(const TransformSteps& steps, const PixelView& image, ElementType type,
                  std::span<std::byte> out, std::vector<float>& row) {
  if (image.floats) {
    write_floats(steps, image, type, out.data(), row);
  } else {
    write_bytes(steps, image, out.data());
  }
}

}  // namespace forebay
