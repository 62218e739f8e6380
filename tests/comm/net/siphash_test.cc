#include "comm/net/siphash.hpp"

#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

namespace forebay::net {
namespace {

std::string hex(const Bytes16& bytes) {
  std::string text;
  for (const std::byte one : bytes) {
    constexpr auto kDigits = "0123456789abcdef";
    text += kDigits[std::to_integer<unsigned>(one) >> 4];
    text += kDigits[std::to_integer<unsigned>(one) & 15];
  }
  return text;
}

// From the authors' vectors.h (vectors_sip128): key 00 01 .. 0f, texts 00 01 .. of some lengths.
TEST(SipHash, GivesThePublishedDigests) {
  Bytes16 key{};
  for (std::size_t i = 0; i < key.size(); ++i) key[i] = static_cast<std::byte>(i);
  const std::pair<std::size_t, const char*> published[] = {
      {0, "a3817f04ba25a8e66df67214c7550293"},  {1, "da87c1d86b99af44347659119b22fc45"},
      {2, "8177228da4a45dc7fca38bdef60affe4"},  {7, "a1f1ebbed8dbc153c0b84aa61ff08239"},
      {8, "3b62a9ba6258f5610f83e264f31497b4"},  {15, "5493e99933b0a8117e08ec0f97cfc3d9"},
      {16, "6ee2a4ca67b054bbfd3315bf85230577"}, {63, "5150d1772f50834a503e069a973fbd7c"},
  };
  for (const auto& [length, digest] : published) {
    std::vector<std::byte> text(length);
    for (std::size_t i = 0; i < length; ++i) text[i] = static_cast<std::byte>(i);
    EXPECT_EQ(hex(siphash(key, text)), digest) << length;
  }
}

TEST(SipHash, ComparesWhole) {
  Bytes16 one{};
  Bytes16 other{};
  EXPECT_TRUE(same_digest(one, other));
  other.back() = std::byte{1};
  EXPECT_FALSE(same_digest(one, other));
  EXPECT_NE(random_bytes(), random_bytes());
}

}  // namespace
}  // namespace forebay::net
