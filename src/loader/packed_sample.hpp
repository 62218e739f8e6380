// A sample as it lies in the memory of all ranks: value | key | length of the key in 32 bits. The
// value comes first, so that it is aligned where the whole is.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

#include "forebay/error.hpp"

namespace forebay {

inline constexpr std::size_t kPackedTrailer = sizeof(std::uint32_t);

inline std::uint64_t packed_bytes(std::uint64_t value, std::uint64_t key) {
  return value + key + kPackedTrailer;
}

/// `to` is packed_bytes() long.
inline void pack_sample(std::span<const std::byte> value, std::span<const std::byte> key,
                        std::span<std::byte> to) {
  const auto key_bytes = static_cast<std::uint32_t>(key.size());
  if (!value.empty()) std::memcpy(to.data(), value.data(), value.size());
  if (!key.empty()) std::memcpy(to.data() + value.size(), key.data(), key.size());
  std::memcpy(to.data() + value.size() + key.size(), &key_bytes, sizeof key_bytes);
}

struct UnpackedSample {
  std::span<const std::byte> value;
  std::span<const std::byte> key;
};

/// Throws communication when the bytes are no packed sample.
inline UnpackedSample unpack_sample(std::span<const std::byte> bytes) {
  std::uint32_t key_bytes = 0;
  const bool has_trailer = bytes.size() >= kPackedTrailer;
  if (has_trailer) {
    std::memcpy(&key_bytes, bytes.data() + bytes.size() - kPackedTrailer, sizeof key_bytes);
  }
  if (!has_trailer || key_bytes > bytes.size() - kPackedTrailer) {
    throw Error(ErrorKind::communication, "a sample from another rank's memory is damaged",
                "this is a fault of Forebay or of the network: please report it");
  }
  const std::size_t value_bytes = bytes.size() - kPackedTrailer - key_bytes;
  return {.value = bytes.first(value_bytes), .key = bytes.subspan(value_bytes, key_bytes)};
}

}  // namespace forebay
