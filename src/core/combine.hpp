// Arithmetic on arrays of numbers whose kind is known only at run time: what ranks do with each
// other's gradients.
//
// float16 and bfloat16 are combined in single precision: combine() rounds each result, and
// combine_all() rounds once at the end. Elements are combined in the order in which arrays are
// given, so results depend on neither the lengths of arrays nor where an element lies. The smallest
// and the largest of floats are NaN where one of them is.
//
// Arrays lie where they like: nothing needs to be aligned. All functions are local, thread-safe,
// and throw usage when lengths do not fit together.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "forebay/tensor.hpp"

namespace forebay {

/// No mean, which is a sum and a division. Bit operations work on whole bytes of any type.
enum class Combination : std::uint8_t { sum, min, max, bit_and, bit_or };

/// The combination that stands behind a reduction; a mean is divided afterwards.
Combination combination_of(Reduction reduction);

/// into = into (how) from, element by element.
void combine(TensorType type, Combination how, std::span<std::byte> into,
             std::span<const std::byte> from);

/// into = sources[0] (how) sources[1] (how) ...; at least one source, each as long as `into`,
/// which may be one of them.
void combine_all(TensorType type, Combination how, std::span<const std::byte* const> sources,
                 std::span<std::byte> into);

/// Divides all numbers; integers are rounded toward zero. `by` > 0.
void divide(TensorType type, std::span<std::byte> values, std::uint64_t by);

/// Fills `values` with what changes no other value: 0 for sums, the largest number (infinity, where
/// there is one) for min, the smallest for max, all or no bits.
void fill_neutral(TensorType type, Combination how, std::span<std::byte> values);

}  // namespace forebay
