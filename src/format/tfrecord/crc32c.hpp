// CRC-32C (Castagnoli), as TFRecord stores it: masked.
#pragma once

#include <cstdint>
#include <span>

namespace forebay::tfrecord {

/// Of `bytes`, turned and shifted so that data with their own checksums keep useful ones.
std::uint32_t masked_crc32c(std::span<const std::byte> bytes);

}  // namespace forebay::tfrecord
