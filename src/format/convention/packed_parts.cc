#include "forebay/packed_parts.hpp"

#include <fmt/format.h>

#include <cstring>

#include "forebay/error.hpp"

namespace forebay {
namespace {

constexpr std::uint32_t kMagic = 0x53504246;  // "FBPS"
constexpr std::size_t kAlignment = 8;

constexpr std::uint64_t aligned(std::uint64_t bytes) {
  return (bytes + kAlignment - 1) / kAlignment * kAlignment;
}

constexpr std::uint64_t table_bytes(std::size_t parts) { return 8 + 8 * std::uint64_t{parts}; }

[[noreturn]] void refuse(std::span<const std::byte> value, std::size_t count) {
  throw Error(ErrorKind::corrupt,
              fmt::format("{} bytes are no packed value of {} parts", value.size(), count),
              "give the whole value of a sample of a data set with parts");
}

}  // namespace

std::uint64_t packed_parts_bytes(std::span<const std::span<const std::byte>> parts) {
  std::uint64_t bytes = table_bytes(parts.size());
  for (const auto& part : parts) bytes = aligned(bytes) + part.size();
  return bytes;
}

void pack_parts(std::span<const std::span<const std::byte>> parts, std::span<std::byte> to) {
  const std::uint32_t head[] = {kMagic, static_cast<std::uint32_t>(parts.size())};
  std::memcpy(to.data(), head, sizeof head);
  std::uint64_t at = table_bytes(parts.size());
  for (std::size_t p = 0; p < parts.size(); ++p) {
    const std::uint64_t length = parts[p].size();
    std::memcpy(to.data() + sizeof head + p * sizeof length, &length, sizeof length);
    const std::uint64_t begin = aligned(at);
    std::memset(to.data() + at, 0, begin - at);
    if (length > 0) std::memcpy(to.data() + begin, parts[p].data(), length);
    at = begin + length;
  }
}

void split_parts(std::span<const std::byte> value, std::span<std::span<const std::byte>> parts) {
  std::uint32_t head[2] = {};
  if (value.size() < table_bytes(parts.size())) refuse(value, parts.size());
  std::memcpy(head, value.data(), sizeof head);
  if (head[0] != kMagic || head[1] != parts.size()) refuse(value, parts.size());
  std::uint64_t at = table_bytes(parts.size());
  for (std::size_t p = 0; p < parts.size(); ++p) {
    std::uint64_t length = 0;
    std::memcpy(&length, value.data() + sizeof head + p * sizeof length, sizeof length);
    at = aligned(at);
    if (at > value.size() || length > value.size() - at) refuse(value, parts.size());
    parts[p] = value.subspan(at, length);
    at += length;
  }
  if (at != value.size()) refuse(value, parts.size());
}

std::vector<std::span<const std::byte>> split_parts(std::span<const std::byte> value,
                                                    std::size_t count) {
  if (count > value.size() / 8) refuse(value, count);
  std::vector<std::span<const std::byte>> parts(count);
  split_parts(value, parts);
  return parts;
}

}  // namespace forebay
