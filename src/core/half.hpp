// Floating point numbers of 16 bits: IEEE 754 binary16 (float16) and the upper half of a single
// (bfloat16).
//
//               sign  exponent  fraction
//   float16        1         5        10      largest 65504, smallest 2^-24
//   bfloat16       1         8         7      the range of a single
//
// Widening is exact. Narrowing rounds to the nearest, ties to even; what is too large becomes
// infinity, what is too small a denormal number or zero. A NaN stays one: it keeps its sign and the
// upper bits of its payload, and becomes quiet. All functions are local and thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>

namespace forebay {

float widen_float16(std::uint16_t bits);
std::uint16_t narrow_float16(float value);
float widen_bfloat16(std::uint16_t bits);
std::uint16_t narrow_bfloat16(float value);

// Arrays of equal lengths, unaligned; with the processor's own conversion (F16C) where it has one.

void widen_float16(const std::byte* from, float* into, std::size_t elements);
void narrow_float16(const float* from, std::byte* into, std::size_t elements);
void widen_bfloat16(const std::byte* from, float* into, std::size_t elements);
void narrow_bfloat16(const float* from, std::byte* into, std::size_t elements);

}  // namespace forebay
