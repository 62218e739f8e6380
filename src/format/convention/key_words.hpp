// What single keys and values say: records that are no samples, the counts in them, and numbers at
// the end of keys.
//
// Values come from files and are never unpickled: of the forms in which programs store a small
// count, the bytes are recognised; everything else is not a count.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace forebay::convention {

/// A key under which programs keep what is no sample, in byte order.
struct MetadataKey {
  std::string_view key;
  bool counts = false;  ///< its value is the number of samples
};
std::span<const MetadataKey> metadata_keys();
/// The entry of metadata_keys() for `key`; null when it is the key of a sample.
const MetadataKey* find_metadata_key(std::string_view key);

/// The numbers that `value` may stand for, most likely one first: decimal digits; an integer of 4
/// or 8 bytes; one that was pickled (protocols 0 to 5) or packed by msgpack. Empty: none of these.
std::vector<std::uint64_t> possible_counts(std::span<const std::byte> value);

/// A key that ends in a number: "image-000000001".
struct NumberedKey {
  std::string_view prefix;  ///< up to the number: "image-"
  std::string_view digits;
  std::uint64_t number = 0;
};
/// Nothing when `key` does not end in digits, or in more than 64 bits hold.
std::optional<NumberedKey> numbered_key(std::string_view key);

/// "image-" is "image": a prefix as the name of a part. Prefixes of nothing but separators, and
/// empty ones, have none.
std::string part_name(std::string_view prefix);

inline std::string_view key_text(std::span<const std::byte> key) {
  return {reinterpret_cast<const char*>(key.data()), key.size()};
}
inline std::span<const std::byte> key_bytes(std::string_view key) {
  return std::as_bytes(std::span(key.data(), key.size()));
}

}  // namespace forebay::convention
