// The szip filter, decoded by libaec where Forebay is built with it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace forebay::hdf5 {

/// Throws unsupported where Forebay is built without libaec, corrupt for impossible parameters.
void require_szip(std::span<const std::uint32_t> values);

/// Bytes that a chunk says it decodes to. Throws corrupt when it is too short to say.
std::uint64_t szip_size(std::span<const std::byte> stored);

/// Fills `out`, of szip_size() bytes. Throws corrupt.
void decode_szip(std::span<const std::uint32_t> values, std::span<const std::byte> stored,
                 std::span<std::byte> out);

}  // namespace forebay::hdf5
