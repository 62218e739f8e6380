#include "format/tfrecord/tfrecord.hpp"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

#include <array>
#include <bit>
#include <cstring>

namespace forebay::tfrecord {
namespace {

static_assert(std::endian::native == std::endian::little);

constexpr std::size_t kWord = 8;

// kTables[k][b]: what byte b contributes when k bytes follow it.
using Tables = std::array<std::array<std::uint32_t, 256>, kWord>;

constexpr Tables make_tables() {
  constexpr std::uint32_t kPolynomial = 0x82F63B78;  // its bits reversed
  Tables tables{};
  for (std::uint32_t b = 0; b < 256; ++b) {
    std::uint32_t crc = b;
    for (int bit = 0; bit < 8; ++bit) crc = crc >> 1 ^ ((crc & 1) != 0 ? kPolynomial : 0);
    tables[0][b] = crc;
  }
  for (std::size_t k = 1; k < kWord; ++k) {
    for (std::uint32_t b = 0; b < 256; ++b) {
      const std::uint32_t before = tables[k - 1][b];
      tables[k][b] = before >> 8 ^ tables[0][before & 0xFF];
    }
  }
  return tables;
}

constexpr Tables kTables = make_tables();

std::uint64_t word_at(std::span<const std::byte> bytes, std::size_t at) {
  std::uint64_t word;
  std::memcpy(&word, bytes.data() + at, sizeof word);
  return word;
}

std::uint32_t crc_by_table(std::uint32_t crc, std::span<const std::byte> bytes) {
  std::size_t at = 0;
  for (; at + kWord <= bytes.size(); at += kWord) {
    const std::uint64_t word = word_at(bytes, at) ^ crc;
    crc = 0;
    for (std::size_t i = 0; i < kWord; ++i) crc ^= kTables[kWord - 1 - i][word >> 8 * i & 0xFF];
  }
  for (; at < bytes.size(); ++at) {
    crc = crc >> 8 ^ kTables[0][(crc ^ std::to_integer<std::uint32_t>(bytes[at])) & 0xFF];
  }
  return crc;
}

#if defined(__x86_64__)
// The instruction is pipelined, so three stretches of bytes are summed at a time. A checksum is
// linear: those of the stretches are joined once zeros as long as what follows were appended to
// each.
constexpr std::size_t kStretch = 256;
// kAppended[k][b]: what byte k of a checksum, b, becomes.
using Appended = std::array<std::array<std::uint32_t, 256>, 4>;

constexpr Appended append_zeros(std::size_t bytes) {
  std::array<std::uint32_t, 32> of_bit{};
  for (std::size_t bit = 0; bit < of_bit.size(); ++bit) {
    std::uint32_t crc = std::uint32_t{1} << bit;
    for (std::size_t i = 0; i < bytes; ++i) crc = crc >> 8 ^ kTables[0][crc & 0xFF];
    of_bit[bit] = crc;
  }
  Appended appended{};
  for (std::size_t bit = 0; bit < of_bit.size(); ++bit) {
    for (std::size_t b = 0; b < 256; ++b) {
      if ((b >> bit % 8 & 1) != 0) appended[bit / 8][b] ^= of_bit[bit];
    }
  }
  return appended;
}

constexpr Appended kOneStretch = append_zeros(kStretch), kTwo = append_zeros(2 * kStretch);

std::uint32_t with_zeros(std::uint64_t crc, const Appended& appended) {
  std::uint32_t sum = 0;
  for (std::size_t k = 0; k < appended.size(); ++k) sum ^= appended[k][crc >> 8 * k & 0xFF];
  return sum;
}

__attribute__((target("sse4.2"))) std::uint32_t crc_by_instruction(
    std::uint32_t crc, std::span<const std::byte> bytes) {
  std::uint64_t wide = crc;
  std::size_t at = 0;
  for (; at + 3 * kStretch <= bytes.size(); at += 3 * kStretch) {
    std::uint64_t second = 0, third = 0;
    for (std::size_t i = at; i < at + kStretch; i += kWord) {
      wide = _mm_crc32_u64(wide, word_at(bytes, i));
      second = _mm_crc32_u64(second, word_at(bytes, i + kStretch));
      third = _mm_crc32_u64(third, word_at(bytes, i + 2 * kStretch));
    }
    wide = with_zeros(wide, kTwo) ^ with_zeros(second, kOneStretch) ^ third;
  }
  for (; at + kWord <= bytes.size(); at += kWord) wide = _mm_crc32_u64(wide, word_at(bytes, at));
  return crc_by_table(static_cast<std::uint32_t>(wide), bytes.subspan(at));
}
#endif

std::uint32_t crc32c(std::span<const std::byte> bytes) {
#if defined(__x86_64__)
  static const bool has = __builtin_cpu_supports("sse4.2") != 0;
  if (has) return ~crc_by_instruction(~0U, bytes);
#endif
  return ~crc_by_table(~0U, bytes);
}

}  // namespace

std::uint32_t masked_crc32c(std::span<const std::byte> bytes) {
  constexpr std::uint32_t kMask = 0xa282ead8;
  return std::rotr(crc32c(bytes), 15) + kMask;
}

}  // namespace forebay::tfrecord
