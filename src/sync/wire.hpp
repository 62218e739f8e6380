// Numbers that move between ranks as 16 bits.
#pragma once

#include <memory>

#include "sync/summation.hpp"

namespace forebay {

/// What numbers of `type` are on the wire: only float32 and float64 become shorter.
TensorType wire_type(TensorType type, WireFormat wire);

/// Numbers of `type` (float32, float64) as 16 bits of `wire` (float16, bfloat16), and back.
/// Unaligned. Local, thread-safe.
void to_wire(TensorType type, std::span<const std::byte> numbers, TensorType wire,
             std::span<std::byte> bits);
void from_wire(TensorType wire, std::span<const std::byte> bits, TensorType type,
               std::span<std::byte> numbers);

/// Does what `inner` does, with numbers that are converted before and after. `inner` itself, where
/// `wire` is as_is.
std::unique_ptr<Summation> over_wire(std::unique_ptr<Summation> inner, WireFormat wire);

}  // namespace forebay
