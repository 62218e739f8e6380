// Compiled with the optimizer's full effort and without fused operations (src/CMakeLists.txt).
#include "format/transform/resample.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>

namespace forebay {
namespace {

// Four floats at a time: a pixel of three channels and one that nobody wants. Compilers make vector
// instructions of this on every machine.
using Four __attribute__((vector_size(16))) = float;

Four load_four(const float* from) {
  Four four;
  std::memcpy(&four, from, sizeof(four));
  return four;
}

void put(float value, float& out) { out = value; }
void put(float value, std::uint8_t& out) {
  // No weight is negative, so no sum is, and none exceeds 255 by more than it rounds off.
  out = static_cast<std::uint8_t>(std::min(value + 0.5F, 255.0F));
}

/// The sum of up to four rows, added to `sum` unless they are the first.
template <typename T>
void add_rows(const T* const* rows, const float* weights, std::size_t count, bool first,
              std::size_t length, float* __restrict sum) {
  const T *a = rows[0], *b = rows[1], *c = rows[2], *d = rows[3];
  const float p = weights[0], q = weights[1], r = weights[2], s = weights[3];
  if (count == 1) {
    for (std::size_t i = 0; i < length; ++i) {
      sum[i] = (first ? 0.0F : sum[i]) + p * static_cast<float>(a[i]);
    }
  } else if (count == 2) {
    for (std::size_t i = 0; i < length; ++i) {
      sum[i] =
          ((first ? 0.0F : sum[i]) + p * static_cast<float>(a[i])) + q * static_cast<float>(b[i]);
    }
  } else if (count == 3) {
    for (std::size_t i = 0; i < length; ++i) {
      sum[i] = (((first ? 0.0F : sum[i]) + p * static_cast<float>(a[i])) +
                q * static_cast<float>(b[i])) +
               r * static_cast<float>(c[i]);
    }
  } else {
    for (std::size_t i = 0; i < length; ++i) {
      sum[i] = ((((first ? 0.0F : sum[i]) + p * static_cast<float>(a[i])) +
                 q * static_cast<float>(b[i])) +
                r * static_cast<float>(c[i])) +
               s * static_cast<float>(d[i]);
    }
  }
}

template <typename T>
void sum_rows(const PixelView& part, std::uint32_t first, std::span<const float> weights,
              float* sum) {
  const std::size_t length = std::size_t{part.shape.width} * part.shape.channels;
  for (std::size_t done = 0; done < weights.size(); done += 4) {
    const std::size_t count = std::min<std::size_t>(4, weights.size() - done);
    const T* rows[4] = {};
    float factors[4] = {};
    for (std::size_t i = 0; i < count; ++i) {
      rows[i] = part.row<T>(first + done + i);
      factors[i] = weights[done + i];
    }
    add_rows(rows, factors, count, done == 0, length, sum);
  }
}

template <typename T>
void sum_gray(const float* row, const AxisWeights& columns, T* out) {
  for (std::size_t x = 0; x < columns.size(); ++x) {
    const auto weights = columns.weights(x);
    const float* from = row + (columns.first(x) - columns.least());
    float sum = 0;
    for (std::size_t i = 0; i < weights.size(); ++i) sum += weights[i] * from[i];
    put(sum, out[x]);
  }
}

template <typename T>
void sum_color(const float* row, const AxisWeights& columns, T* out) {
  for (std::size_t x = 0; x < columns.size(); ++x) {
    const auto weights = columns.weights(x);
    const float* from = row + std::size_t{3} * (columns.first(x) - columns.least());
    Four sum{};
    for (std::size_t i = 0; i < weights.size(); ++i) sum += weights[i] * load_four(from + 3 * i);
    for (std::size_t c = 0; c < 3; ++c) put(sum[c], out[3 * x + c]);
  }
}

template <typename T>
void resample_as(const PixelView& part, const AxisWeights& rows, const AxisWeights& columns,
                 const PixelView& out, std::vector<float>& row) {
  // The last pixel is loaded as four floats, too.
  const std::size_t needed = std::size_t{part.shape.width} * part.shape.channels + 1;
  if (row.size() < needed) row.resize(needed);
  for (std::size_t y = 0; y < rows.size(); ++y) {
    sum_rows<T>(part, rows.first(y) - rows.least(), rows.weights(y), row.data());
    if (out.shape.channels == 3) {
      sum_color(row.data(), columns, out.row<T>(y));
    } else {
      sum_gray(row.data(), columns, out.row<T>(y));
    }
  }
}

}  // namespace

void AxisWeights::set(const AxisMap& map) {
  const double scale = map.length / map.output;
  const double reach = std::max(scale, 1.0);  // half of the triangle's foot
  stride_ = std::min<std::size_t>(static_cast<std::size_t>(2 * reach) + 3, map.end - map.least);
  firsts_.resize(map.count);
  counts_.resize(map.count);
  if (weights_.size() < map.count * stride_) weights_.resize(map.count * stride_);
  least_ = map.end;
  end_ = map.least;
  for (std::size_t i = 0; i < map.count; ++i) set_pixel(map, i);
}

void AxisWeights::set_pixel(const AxisMap& map, std::size_t i) {
  const double scale = map.length / map.output;
  const double reach = std::max(scale, 1.0);
  const std::size_t pixel = map.first + (map.mirrored ? map.count - 1 - i : i);
  const double center = map.begin + (static_cast<double>(pixel) + 0.5) * scale;
  const auto limited = [&map](double position) {
    return static_cast<std::uint32_t>(std::clamp<double>(position, map.least, map.end));
  };
  std::uint32_t first = limited(center - reach + 0.5), end = limited(center + reach + 0.5);
  if (end <= first) {  // of a part that is thinner than a pixel
    first = std::min(first, map.end - 1);
    end = first + 1;
  }
  const auto weight_of = [&](std::uint32_t x) {
    return std::max(1 - std::abs(x + 0.5 - center) / reach, 0.0);
  };
  while (first + 1 < end && weight_of(first) == 0) ++first;
  while (first + 1 < end && weight_of(end - 1) == 0) --end;
  double sum = 0;
  for (std::uint32_t x = first; x < end; ++x) sum += weight_of(x);
  float* weights = weights_.data() + i * stride_;
  for (std::uint32_t x = first; x < end; ++x) {
    weights[x - first] = sum > 0 ? static_cast<float>(weight_of(x) / sum) : 1.0F;
  }
  firsts_[i] = first;
  counts_[i] = end - first;
  least_ = std::min(least_, first);
  end_ = std::max(end_, end);
}

void resample(const PixelView& part, const AxisWeights& rows, const AxisWeights& columns,
              const PixelView& out, std::vector<float>& row) {
  if (part.floats) {
    resample_as<float>(part, rows, columns, out, row);
  } else {
    resample_as<std::uint8_t>(part, rows, columns, out, row);
  }
}

}  // namespace forebay
