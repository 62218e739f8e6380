// Compiled with the optimizer's full effort (see src/CMakeLists.txt): what counts here is that the
// inner loops become vector instructions. They work on blocks that fit into the first cache, so
// that each array is read from memory once, however many are combined.

#include "core/combine.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <limits>
#include <type_traits>

#include "core/half.hpp"
#include "forebay/error.hpp"

namespace forebay {
namespace {

constexpr std::size_t kBlock = 1024;  // elements

// What an element type is calculated in, and how it gets there and back.

template <typename T>
struct Plain {
  using Number = T;
  static constexpr std::size_t kBytes = sizeof(T);
  static void load(const std::byte* from, T* into, std::size_t elements) {
    std::memcpy(into, from, elements * sizeof(T));
  }
  static void store(const T* from, std::byte* into, std::size_t elements) {
    std::memcpy(into, from, elements * sizeof(T));
  }
};

struct Float16 {
  using Number = float;
  static constexpr std::size_t kBytes = 2;
  static void load(const std::byte* from, float* into, std::size_t elements) {
    widen_float16(from, into, elements);
  }
  static void store(const float* from, std::byte* into, std::size_t elements) {
    narrow_float16(from, into, elements);
  }
};

struct Bfloat16 {
  using Number = float;
  static constexpr std::size_t kBytes = 2;
  static void load(const std::byte* from, float* into, std::size_t elements) {
    widen_bfloat16(from, into, elements);
  }
  static void store(const float* from, std::byte* into, std::size_t elements) {
    narrow_bfloat16(from, into, elements);
  }
};

struct Sum {
  template <typename T>
  static T of(T a, T b) {
    if constexpr (std::is_integral_v<T>) {
      using Unsigned = std::make_unsigned_t<T>;  // which may overflow
      return static_cast<T>(static_cast<Unsigned>(a) + static_cast<Unsigned>(b));
    } else {
      return a + b;
    }
  }
};
/// Whether it is no number, as only floats can be.
template <typename T>
bool is_nan(T value) {
  if constexpr (std::is_integral_v<T>) {
    return false;
  } else {
    return std::isnan(value);
  }
}

// NaN where either is. With `|` in place of `||`, the loops become vector instructions.
struct Min {
  template <typename T>
  static T of(T a, T b) {
    return (static_cast<int>(b < a) | static_cast<int>(is_nan(b))) != 0 ? b : a;
  }
};
struct Max {
  template <typename T>
  static T of(T a, T b) {
    return (static_cast<int>(a < b) | static_cast<int>(is_nan(b))) != 0 ? b : a;
  }
};
struct And {
  template <typename T>
  static T of(T a, T b) {
    return static_cast<T>(a & b);
  }
};
struct Or {
  template <typename T>
  static T of(T a, T b) {
    return static_cast<T>(a | b);
  }
};

template <typename Element, typename Operation>
void combine_blocks(std::span<const std::byte* const> sources, std::span<std::byte> into) {
  using Number = typename Element::Number;
  alignas(64) std::array<Number, kBlock> sum;
  alignas(64) std::array<Number, kBlock> next;
  const std::size_t elements = into.size() / Element::kBytes;
  for (std::size_t first = 0; first < elements; first += kBlock) {
    const std::size_t count = std::min(kBlock, elements - first);
    const std::size_t offset = first * Element::kBytes;
    Element::load(sources[0] + offset, sum.data(), count);
    for (const std::byte* source : sources.subspan(1)) {
      Element::load(source + offset, next.data(), count);
      for (std::size_t i = 0; i < count; ++i) sum[i] = Operation::of(sum[i], next[i]);
    }
    Element::store(sum.data(), into.data() + offset, count);
  }
}

/// Calls `act` with the Element of `type`.
template <typename Act>
void with_element(TensorType type, Act act) {
  switch (type) {
    case TensorType::float16:
      return act(Float16{});
    case TensorType::bfloat16:
      return act(Bfloat16{});
    case TensorType::float32:
      return act(Plain<float>{});
    case TensorType::float64:
      return act(Plain<double>{});
    case TensorType::int32:
      return act(Plain<std::int32_t>{});
    case TensorType::int64:
      return act(Plain<std::int64_t>{});
  }
}

void require_whole(TensorType type, std::size_t bytes) {
  if (bytes % size_of(type) == 0) return;
  throw Error(ErrorKind::usage,
              fmt::format("{} bytes are no whole number of {}", bytes, to_string(type)), "");
}

template <typename Number>
Number neutral(Combination how) {
  using Limits = std::numeric_limits<Number>;
  constexpr Number kLargest = Limits::has_infinity ? Limits::infinity() : Limits::max();
  constexpr Number kSmallest = Limits::has_infinity ? -Limits::infinity() : Limits::min();
  if (how == Combination::min) return kLargest;
  if (how == Combination::max) return kSmallest;
  return Number{0};
}

/// Changes all numbers in blocks.
template <typename Element, typename Change>
void change_blocks(std::span<std::byte> values, Change change) {
  std::array<typename Element::Number, kBlock> block;
  const std::size_t elements = values.size() / Element::kBytes;
  for (std::size_t first = 0; first < elements; first += kBlock) {
    const std::size_t count = std::min(kBlock, elements - first);
    std::byte* const place = values.data() + first * Element::kBytes;
    Element::load(place, block.data(), count);
    for (std::size_t i = 0; i < count; ++i) block[i] = change(block[i]);
    Element::store(block.data(), place, count);
  }
}

}  // namespace

Combination combination_of(Reduction reduction) {
  if (reduction == Reduction::min) return Combination::min;
  if (reduction == Reduction::max) return Combination::max;
  return Combination::sum;
}

void combine(TensorType type, Combination how, std::span<std::byte> into,
             std::span<const std::byte> from) {
  if (into.size() != from.size()) {
    throw Error(
        ErrorKind::usage,
        fmt::format("arrays of {} and {} bytes cannot be combined", into.size(), from.size()), "");
  }
  const std::array<const std::byte*, 2> sources{into.data(), from.data()};
  combine_all(type, how, sources, into);
}

void combine_all(TensorType type, Combination how, std::span<const std::byte* const> sources,
                 std::span<std::byte> into) {
  if (sources.empty()) throw Error(ErrorKind::usage, "nothing was given to combine", "");
  using Byte = Plain<unsigned char>;
  if (how == Combination::bit_and) return combine_blocks<Byte, And>(sources, into);
  if (how == Combination::bit_or) return combine_blocks<Byte, Or>(sources, into);
  require_whole(type, into.size());
  with_element(type, [&]<typename Element>(Element) {
    if (how == Combination::sum) combine_blocks<Element, Sum>(sources, into);
    if (how == Combination::min) combine_blocks<Element, Min>(sources, into);
    if (how == Combination::max) combine_blocks<Element, Max>(sources, into);
  });
}

void divide(TensorType type, std::span<std::byte> values, std::uint64_t by) {
  require_whole(type, values.size());
  if (by == 0) throw Error(ErrorKind::usage, "numbers cannot be divided by 0", "");
  with_element(type, [&]<typename Element>(Element) {
    const auto divisor = static_cast<typename Element::Number>(by);
    change_blocks<Element>(values, [divisor](auto value) { return value / divisor; });
  });
}

void fill_neutral(TensorType type, Combination how, std::span<std::byte> values) {
  if (how == Combination::sum || how == Combination::bit_or) {
    std::ranges::fill(values, std::byte{0});
    return;
  }
  if (how == Combination::bit_and) {
    std::ranges::fill(values, std::byte{0xFF});
    return;
  }
  require_whole(type, values.size());
  with_element(type, [&]<typename Element>(Element) {
    using Number = typename Element::Number;
    change_blocks<Element>(values, [value = neutral<Number>(how)](Number) { return value; });
  });
}

}  // namespace forebay
