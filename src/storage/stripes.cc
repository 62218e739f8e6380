#include "storage/stripes.hpp"

#include <sys/vfs.h>
#include <sys/xattr.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <limits>
#include <type_traits>

namespace forebay {
namespace {

constexpr std::uint32_t kLustre = 0x0BD00BD0;  // of statfs()

// What lov_user_md has where, in bytes from its start; its numbers are those of a machine with the
// low byte first.
constexpr std::uint32_t kPlain = 0x0BD10BD0, kWithPool = 0x0BD30BD0, kComposite = 0x0BD60BD0;
constexpr std::size_t kStripeBytes = 24, kStripeCount = 28, kPlainHeader = 32;
constexpr std::size_t kEntryCount = 14, kCompositeHeader = 32, kEntryBytes = 48;
constexpr std::uint32_t kOnServers = 0x10;  // the component has its objects (LCME_FL_INIT)
constexpr std::uint16_t kAllServers = 0xFFFF;
constexpr std::uint32_t kSmallestStripe = 4096;

template <typename T>
requires std::is_unsigned_v<T> T number_at(std::span<const std::byte> bytes, std::size_t offset) {
  static_assert(std::endian::native == std::endian::little);
  T number = 0;
  std::memcpy(&number, bytes.data() + offset, sizeof(T));
  return number;
}

/// Zeros where `layout` is none of a file on servers.
Stripes plain_stripes(std::span<const std::byte> layout) {
  if (layout.size() < kPlainHeader) return {};
  const auto magic = number_at<std::uint32_t>(layout, 0);
  if (magic != kPlain && magic != kWithPool) return {};
  const auto bytes = number_at<std::uint32_t>(layout, kStripeBytes);
  const auto servers = number_at<std::uint16_t>(layout, kStripeCount);
  if (bytes < kSmallestStripe || servers == 0 || servers == kAllServers) return {};
  return {.bytes = bytes, .servers = servers};
}

/// Component number `entry` of a file of several; empty where it has no objects.
StripedRange component(std::span<const std::byte> layout, std::size_t entry) {
  const std::size_t at = kCompositeHeader + entry * kEntryBytes;
  if (layout.size() < at + kEntryBytes) return {};
  const auto flags = number_at<std::uint32_t>(layout, at + 4);
  const auto offset = number_at<std::uint32_t>(layout, at + 24);
  const auto size = number_at<std::uint32_t>(layout, at + 28);
  if ((flags & kOnServers) == 0 || offset > layout.size() || size > layout.size() - offset)
    return {};
  return {.begin = number_at<std::uint64_t>(layout, at + 8),
          .end = number_at<std::uint64_t>(layout, at + 16),
          .stripes = plain_stripes(layout.subspan(offset, size))};
}

}  // namespace

std::vector<StripedRange> parse_lustre_layout(std::span<const std::byte> answer) {
  constexpr std::uint64_t kEnd = std::numeric_limits<std::uint64_t>::max();
  std::vector<StripedRange> ranges;
  const auto add = [&ranges](const StripedRange& range) {
    const bool follows = ranges.empty() || range.begin >= ranges.back().end;  // else of a mirror
    if (range.stripes.bytes > 0 && range.begin < range.end && follows) ranges.push_back(range);
  };
  if (answer.size() < kPlainHeader) return ranges;
  if (number_at<std::uint32_t>(answer, 0) != kComposite) {
    add({.begin = 0, .end = kEnd, .stripes = plain_stripes(answer)});
    return ranges;
  }
  const auto entries = number_at<std::uint16_t>(answer, kEntryCount);
  for (std::size_t entry = 0; entry < entries; ++entry) add(component(answer, entry));
  return ranges;
}

std::vector<StripedRange> striped_ranges(int descriptor) {
  struct statfs system {};
  if (::fstatfs(descriptor, &system) != 0) return {};
  if (static_cast<std::uint32_t>(system.f_type) != kLustre) return {};
  std::vector<std::byte> answer(std::size_t{64} << 10);  // the largest value of an attribute
  const auto size = ::fgetxattr(descriptor, "lustre.lov", answer.data(), answer.size());
  if (size < 0) return {};
  return parse_lustre_layout(std::span(answer).first(static_cast<std::size_t>(size)));
}

std::uint64_t request_bytes_for(const File& file, std::uint64_t usual) {
  constexpr std::uint64_t kLargest = std::uint64_t{4} << 20;
  const std::uint64_t stripe = file.stripes(0).bytes;
  return stripe == 0 ? usual : std::min(stripe, kLargest);
}

}  // namespace forebay
