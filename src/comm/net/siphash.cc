#include "comm/net/siphash.hpp"

#include <sys/random.h>

#include <bit>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <system_error>

#include "forebay/error.hpp"

namespace forebay::net {
namespace {

struct SipState {
  std::uint64_t v0, v1, v2, v3;

  void rounds(int count) {
    for (int i = 0; i < count; ++i) {
      v0 += v1;
      v1 = std::rotl(v1, 13) ^ v0;
      v0 = std::rotl(v0, 32);
      v2 += v3;
      v3 = std::rotl(v3, 16) ^ v2;
      v0 += v3;
      v3 = std::rotl(v3, 21) ^ v0;
      v2 += v1;
      v1 = std::rotl(v1, 17) ^ v2;
      v2 = std::rotl(v2, 32);
    }
  }
  void add(std::uint64_t word) {
    v3 ^= word;
    rounds(2);
    v0 ^= word;
  }
  std::uint64_t digest() const { return v0 ^ v1 ^ v2 ^ v3; }
};

/// Up to 8 bytes, the first one lowest.
std::uint64_t word_of(std::span<const std::byte> bytes) {
  std::uint64_t word = 0;
  for (std::size_t i = bytes.size(); i > 0; --i) {
    word = word << 8 | std::to_integer<std::uint64_t>(bytes[i - 1]);
  }
  return word;
}

void put_word(std::uint64_t word, std::span<std::byte> to) {
  for (std::size_t i = 0; i < 8; ++i) to[i] = static_cast<std::byte>(word >> (8 * i));
}

}  // namespace

Bytes16 siphash(const Bytes16& key, std::span<const std::byte> text) {
  const std::uint64_t k0 = word_of(std::span(key).first(8));
  const std::uint64_t k1 = word_of(std::span(key).last(8));
  SipState state{.v0 = k0 ^ 0x736f6d6570736575,
                 .v1 = k1 ^ 0x646f72616e646f6d ^ 0xee,
                 .v2 = k0 ^ 0x6c7967656e657261,
                 .v3 = k1 ^ 0x7465646279746573};
  const auto length = std::uint64_t{text.size()} << 56;
  for (; text.size() >= 8; text = text.subspan(8)) state.add(word_of(text.first(8)));
  state.add(length | word_of(text));
  Bytes16 result{};
  state.v2 ^= 0xee;
  state.rounds(4);
  put_word(state.digest(), std::span(result).first(8));
  state.v1 ^= 0xdd;
  state.rounds(4);
  put_word(state.digest(), std::span(result).last(8));
  return result;
}

bool same_digest(const Bytes16& a, const Bytes16& b) {
  auto difference = std::byte{0};
  for (std::size_t i = 0; i < a.size(); ++i) difference |= a[i] ^ b[i];
  return difference == std::byte{0};
}

Bytes16 random_bytes() {
  Bytes16 bytes{};
  // So few bytes come whole, or not at all.
  while (getrandom(bytes.data(), bytes.size(), 0) != static_cast<ssize_t>(bytes.size())) {
    if (errno == EINTR) continue;
    throw Error(ErrorKind::io, "getrandom: " + std::generic_category().message(errno),
                "let this process make the system call getrandom");
  }
  return bytes;
}

}  // namespace forebay::net
