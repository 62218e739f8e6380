// The cache of the pread engine: right bytes, few requests.
#include "format/lmdb/page_reader.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "tests/support/lmdb_builder.hpp"

namespace forebay::lmdb {
namespace {

constexpr std::size_t kPage = 4096;
constexpr std::size_t kSize = 3'000'000;

class Cache : public testing::Test {
 protected:
  Cache() : text_(test::test_value(1, 1, kSize)) {}

  void expect_bytes(std::uint64_t offset, std::size_t size) {
    const auto bytes = cache_.fetch(offset, size);
    ASSERT_EQ(bytes.size(), size);
    ASSERT_TRUE(
        std::equal(bytes.begin(), bytes.end(),
                   std::as_bytes(std::span(text_)).begin() + static_cast<std::ptrdiff_t>(offset)));
  }

  std::string text_;
  ReadCache cache_{memory_file("text", std::as_bytes(std::span(text_))), kSize};
};

TEST_F(Cache, GivesTheBytesOfTheFileInAnyOrder) {
  std::mt19937_64 random(5);
  for (int i = 0; i < 3000; ++i) {
    const std::uint64_t offset = random() % (kSize / kPage) * kPage;
    const std::uint64_t most = std::min<std::uint64_t>(kSize - offset, ReadCache::kLargestRun);
    expect_bytes(offset, 1 + random() % most);
  }
}

TEST_F(Cache, ReadsALongerRunEachTimeAWalkGoesOn) {
  for (std::uint64_t offset = 0; offset + kPage <= kSize; offset += kPage) {
    expect_bytes(offset, kPage);
  }
  EXPECT_LT(cache_.requests(), 20U);
  EXPECT_LE(cache_.bytes(), kSize);
}

TEST_F(Cache, ReadsLongRunsForTwoWalksAtOnce) {
  constexpr std::uint64_t kHalf = kSize / kPage / 2 * kPage;
  for (std::uint64_t offset = 0; offset + kPage <= kHalf; offset += kPage) {
    expect_bytes(offset, kPage);
    expect_bytes(kHalf + offset, kPage);
  }
  EXPECT_LT(cache_.requests(), 40U);
}

TEST_F(Cache, ReadsLittleForALookup) {
  expect_bytes(kPage * 100, kPage);
  expect_bytes(kPage * 500, kPage);
  EXPECT_EQ(cache_.bytes(), 2 * ReadCache::kSmallestRun);
}

TEST_F(Cache, KeepsEarlierBytesOverTheNextFetches) {
  const auto first = cache_.fetch(0, kPage);
  for (std::uint64_t i = 1; i < ReadCache::kRuns; ++i) cache_.fetch(i * 40 * kPage, kPage);
  EXPECT_TRUE(std::equal(first.begin(), first.end(), std::as_bytes(std::span(text_)).begin()));
}

TEST_F(Cache, ReadsLargeValuesOnTheirOwn) {
  const auto bytes = cache_.large(kPage, 2'000'000);
  EXPECT_TRUE(
      std::equal(bytes.begin(), bytes.end(), std::as_bytes(std::span(text_)).begin() + kPage));
  EXPECT_EQ(cache_.requests(), 1U);
}

}  // namespace
}  // namespace forebay::lmdb
