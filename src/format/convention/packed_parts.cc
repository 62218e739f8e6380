#include "forebay/packed_parts.hpp"

#include <fmt/format.h>

#include <cstring>
#include <optional>
#include <random>

#include "forebay/error.hpp"

namespace forebay {
namespace {

constexpr std::uint32_t kMagic = 0x53504246;  // "FBPS"
constexpr std::size_t kAlignment = 8;
constexpr std::uint64_t kLine = 64;    // of a cache
constexpr std::uint64_t kPage = 4096;  // behind which a processor fetches nothing by itself

constexpr std::uint64_t aligned(std::uint64_t bytes) {
  return (bytes + kAlignment - 1) / kAlignment * kAlignment;
}

/// No file can know it, so no bytes of one are taken for addresses.
std::uint64_t secret() {
  static const std::uint64_t drawn = [] {
    std::random_device random;
    return std::uint64_t{random()} << 32 | random();
  }();
  return drawn;
}

/// What a value that tells where its parts are begins with.
struct Told {
  std::uint64_t secret = 0;
  std::uint64_t packed_bytes = 0;
};
struct ToldPart {
  std::uintptr_t address = 0;
  std::uint64_t length = 0;
};

std::optional<Told> told(std::span<const std::byte> value) {
  Told head;
  if (value.size() < sizeof head || (value.size() - sizeof head) % sizeof(ToldPart) != 0) return {};
  std::memcpy(&head, value.data(), sizeof head);
  return head.secret == secret() ? std::optional(head) : std::nullopt;
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

std::uint64_t told_parts_bytes(std::size_t parts) {
  return sizeof(Told) + parts * sizeof(ToldPart);
}

void tell_parts(std::span<const std::span<const std::byte>> parts, std::span<std::byte> to) {
  const Told head{.secret = secret(), .packed_bytes = packed_parts_bytes(parts)};
  std::memcpy(to.data(), &head, sizeof head);
  std::byte* place = to.data() + sizeof head;
  for (const auto& part : parts) {
    const ToldPart one{.address = reinterpret_cast<std::uintptr_t>(part.data()),
                       .length = part.size()};
    std::memcpy(place, &one, sizeof one);
    place += sizeof one;
  }
}

std::uint64_t packed_size(std::span<const std::byte> value) {
  const auto head = told(value);
  return head ? head->packed_bytes : value.size();
}

void split_parts(std::span<const std::byte> value, std::span<std::span<const std::byte>> parts) {
  if (told(value) && value.size() == told_parts_bytes(parts.size())) {
    for (std::size_t p = 0; p < parts.size(); ++p) {
      ToldPart one;
      std::memcpy(&one, value.data() + told_parts_bytes(p), sizeof one);
      parts[p] = {reinterpret_cast<const std::byte*>(one.address), one.length};
    }
    return;
  }
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

void fetch_ends(std::span<const std::byte> value) noexcept {
  if (value.empty()) return;
  if (!told(value)) {
    __builtin_prefetch(value.data());
    __builtin_prefetch(&value.back());
    return;
  }
  ToldPart one;
  for (std::size_t at = sizeof(Told); at < value.size(); at += sizeof one) {
    std::memcpy(&one, value.data() + at, sizeof one);
    const auto* const begin = reinterpret_cast<const std::byte*>(one.address);
    __builtin_prefetch(begin);
    if (one.length > kLine) __builtin_prefetch(begin + one.length - 1);
    const std::uint64_t in_page = kPage - one.address % kPage;
    if (one.length > in_page) __builtin_prefetch(begin + in_page);
  }
}

void copy_packed(std::span<const std::byte> value, std::span<std::byte> to) {
  if (told(value)) {
    pack_parts(split_parts(value, (value.size() - sizeof(Told)) / sizeof(ToldPart)), to);
  } else if (!value.empty()) {
    std::memcpy(to.data(), value.data(), value.size());
  }
}

std::vector<std::span<const std::byte>> split_parts(std::span<const std::byte> value,
                                                    std::size_t count) {
  if (count > value.size() / 8) refuse(value, count);
  std::vector<std::span<const std::byte>> parts(count);
  split_parts(value, parts);
  return parts;
}

}  // namespace forebay
