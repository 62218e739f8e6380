#include "core/half.hpp"

#include <bit>
#include <cstring>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace forebay {
namespace {

constexpr std::uint32_t kInfinity32 = 0x7F80'0000;
constexpr std::uint32_t kSign32 = 0x8000'0000;

std::uint16_t load(const std::byte* from) {
  std::uint16_t bits = 0;
  std::memcpy(&bits, from, sizeof(bits));
  return bits;
}

void store(std::byte* into, std::uint16_t bits) { std::memcpy(into, &bits, sizeof(bits)); }

/// value / 2^shift, rounded to the nearest, ties to even. 1 <= shift <= 31.
std::uint32_t shift_rounded(std::uint32_t value, int shift) {
  const std::uint32_t half = (std::uint32_t{1} << (shift - 1)) - 1;
  const std::uint32_t odd = (value >> shift) & 1;
  return (value + half + odd) >> shift;
}

void widen_float16_plainly(const std::byte* from, float* into, std::size_t elements) {
  for (std::size_t i = 0; i < elements; ++i) into[i] = widen_float16(load(from + 2 * i));
}

void narrow_float16_plainly(const float* from, std::byte* into, std::size_t elements) {
  for (std::size_t i = 0; i < elements; ++i) store(into + 2 * i, narrow_float16(from[i]));
}

#if defined(__x86_64__)

constexpr std::size_t kLane = 8;  // elements of one instruction

// Clang 14 cannot ask for F16C by its name; every processor with AVX2 has it.
bool has_f16c() {
  static const bool has = __builtin_cpu_supports("avx2") != 0;
  return has;
}

__attribute__((target("avx,f16c"))) void widen_lanes(const std::byte* from, float* into,
                                                     std::size_t lanes) {
  for (std::size_t i = 0; i < lanes; ++i) {
    const __m128i bits = _mm_loadu_si128(reinterpret_cast<const __m128i*>(from + i * kLane * 2));
    _mm256_storeu_ps(into + i * kLane, _mm256_cvtph_ps(bits));
  }
}

__attribute__((target("avx,f16c"))) void narrow_lanes(const float* from, std::byte* into,
                                                      std::size_t lanes) {
  for (std::size_t i = 0; i < lanes; ++i) {
    const __m128i bits = _mm256_cvtps_ph(_mm256_loadu_ps(from + i * kLane),
                                         _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
    _mm_storeu_si128(reinterpret_cast<__m128i*>(into + i * kLane * 2), bits);
  }
}

#endif

}  // namespace

float widen_float16(std::uint16_t bits) {
  constexpr int kExponentGap = 127 - 15;
  const std::uint32_t sign = std::uint32_t{bits & 0x8000U} << 16;
  const std::uint32_t exponent = (bits >> 10) & 0x1FU;
  const std::uint32_t fraction = bits & 0x3FFU;
  if (exponent == 0x1F) {
    const std::uint32_t quiet = fraction != 0 ? 0x40'0000U : 0;
    return std::bit_cast<float>(sign | kInfinity32 | quiet | fraction << 13);
  }
  if (exponent != 0) {
    return std::bit_cast<float>(sign | (exponent + kExponentGap) << 23 | fraction << 13);
  }
  // Zero or denormal: fraction x 2^-24, which a single holds exactly.
  const float magnitude = static_cast<float>(fraction) * 0x1p-24F;
  return std::bit_cast<float>(sign | std::bit_cast<std::uint32_t>(magnitude));
}

std::uint16_t narrow_float16(float value) {
  constexpr std::uint32_t kSmallestNormal = (127 - 14) << 23;  // 2^-14
  constexpr std::uint32_t kSmallest = (127 - 25) << 23;        // 2^-25: a tie, goes to zero
  constexpr std::uint32_t kOverflow = 0x477F'F000;             // 65520: a tie, goes to infinity
  const auto bits = std::bit_cast<std::uint32_t>(value);
  const auto sign = static_cast<std::uint16_t>((bits & kSign32) >> 16);
  const std::uint32_t magnitude = bits & ~kSign32;
  std::uint32_t result = 0;
  if (magnitude > kInfinity32) {
    result = 0x7E00U | ((magnitude >> 13) & 0x3FFU);
  } else if (magnitude >= kOverflow) {
    result = 0x7C00U;
  } else if (magnitude >= kSmallestNormal) {
    // A fraction that rounds up to 2 carries into the exponent, as it should.
    result = shift_rounded(magnitude - ((127U - 15U) << 23), 13);
  } else if (magnitude > kSmallest) {
    const std::uint32_t significand = (magnitude & 0x7F'FFFFU) | 0x80'0000U;
    const int exponent = static_cast<int>(magnitude >> 23);
    result = shift_rounded(significand, 126 - exponent);
  }
  return static_cast<std::uint16_t>(sign | result);
}

float widen_bfloat16(std::uint16_t bits) {
  const std::uint32_t wide = std::uint32_t{bits} << 16;
  const bool nan = (wide & ~kSign32) > kInfinity32;
  return std::bit_cast<float>(nan ? wide | 0x40'0000U : wide);
}

std::uint16_t narrow_bfloat16(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  const std::uint32_t rounded = (bits + 0x7FFFU + ((bits >> 16) & 1U)) >> 16;
  const bool nan = (bits & ~kSign32) > kInfinity32;
  return static_cast<std::uint16_t>(nan ? (bits >> 16) | 0x40U : rounded);
}

void widen_float16(const std::byte* from, float* into, std::size_t elements) {
  std::size_t done = 0;
#if defined(__x86_64__)
  if (has_f16c()) {
    widen_lanes(from, into, elements / kLane);
    done = elements / kLane * kLane;
  }
#endif
  widen_float16_plainly(from + 2 * done, into + done, elements - done);
}

void narrow_float16(const float* from, std::byte* into, std::size_t elements) {
  std::size_t done = 0;
#if defined(__x86_64__)
  if (has_f16c()) {
    narrow_lanes(from, into, elements / kLane);
    done = elements / kLane * kLane;
  }
#endif
  narrow_float16_plainly(from + done, into + 2 * done, elements - done);
}

void widen_bfloat16(const std::byte* from, float* into, std::size_t elements) {
  for (std::size_t i = 0; i < elements; ++i) into[i] = widen_bfloat16(load(from + 2 * i));
}

void narrow_bfloat16(const float* from, std::byte* into, std::size_t elements) {
  for (std::size_t i = 0; i < elements; ++i) store(into + 2 * i, narrow_bfloat16(from[i]));
}

}  // namespace forebay
