// Kinds of numbers that ranks reduce over each other, and how.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace forebay {

enum class TensorType : std::uint8_t { float16, bfloat16, float32, float64, int32, int64 };

/// Of one element, in bytes.
std::size_t size_of(TensorType type);
std::string_view to_string(TensorType type);
/// Reads what to_string writes. Throws usage.
TensorType parse_tensor_type(std::string_view text);

/// `mean` divides the sum by the number of ranks; integers are rounded toward zero.
/// float16 and bfloat16 are summed in single precision where Forebay sums, and rounded once.
/// Integer sums that do not fit wrap around. `min` and `max` are NaN where any rank's number is.
enum class Reduction : std::uint8_t { sum, mean, min, max };
std::string_view to_string(Reduction reduction);

}  // namespace forebay
