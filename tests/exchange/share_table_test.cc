#include "exchange/share.hpp"

#include <gtest/gtest.h>

#include <random>
#include <vector>

#include "forebay/error.hpp"
#include "tests/support/scale.hpp"

namespace forebay {
namespace {

/// Words, so that the bytes are aligned.
std::vector<std::uint64_t> encoded(const std::vector<std::uint64_t>& ends) {
  std::vector<std::uint64_t> words(encoded_table_bytes(ends) / 8);
  encode_table(ends, std::as_writable_bytes(std::span(words)));
  return words;
}

void expect_same(const std::vector<std::uint64_t>& ends) {
  const auto words = encoded(ends);
  const auto table = ShareTable::over(std::as_bytes(std::span(words)), ends.size());
  ASSERT_EQ(table.samples(), ends.size());
  std::uint64_t begin = 0;
  for (std::size_t i = 0; i < ends.size(); ++i) {
    const auto place = table.at(i);
    ASSERT_EQ(place.offset, begin) << i;
    ASSERT_EQ(place.bytes, ends[i] - begin) << i;
    begin = ends[i];
  }
}

TEST(ShareTable, FindsEverySampleOfAnySize) {
  std::mt19937_64 random(1);
  for (int round = 0; round < test::random_cases(50); ++round) {
    const std::uint64_t longest = std::uint64_t{1} << (random() % 36);
    std::vector<std::uint64_t> ends;
    std::uint64_t end = 0;
    for (std::size_t i = random() % 400; i > 0; --i) {
      ends.push_back(end += random() % 3 == 0 ? 0 : random() % longest);
    }
    expect_same(ends);
  }
}

TEST(ShareTable, FindsSamplesAtTheEdgesOfBlocks) {
  for (const std::size_t count : {0U, 1U, 62U, 63U, 64U, 65U, 127U, 128U, 129U}) {
    std::vector<std::uint64_t> ends;
    for (std::size_t i = 1; i <= count; ++i) ends.push_back(i * 1000);
    expect_same(ends);
  }
}

TEST(ShareTable, TakesAboutFourBytesASample) {
  std::vector<std::uint64_t> ends;
  for (std::uint64_t i = 1; i <= 1'000'000; ++i) ends.push_back(i * 50'000'000);
  EXPECT_LT(encoded_table_bytes(ends), 4'200'000U);
}

TEST(ShareTable, HoldsSamplesBeyondFourGigabytes) {
  expect_same({std::uint64_t{1} << 33, (std::uint64_t{1} << 33) + 5, std::uint64_t{1} << 50});
}

TEST(ShareTable, NeedsNoMemoryForOneSize) {
  const auto table = ShareTable::fixed(std::uint64_t{1} << 40, 3000);
  EXPECT_EQ(table.at((std::uint64_t{1} << 40) - 1).offset, ((std::uint64_t{1} << 40) - 1) * 3000);
  EXPECT_EQ(table.at(7).bytes, 3000U);
}

TEST(ShareTable, RefusesWhatHasTheWrongLength) {
  auto words = encoded({10, 20, 30});
  const auto bytes = std::as_bytes(std::span(words));
  EXPECT_THROW(ShareTable::over(bytes, 200), Error);
  EXPECT_THROW(ShareTable::over(bytes.first(8), 3), Error);
  EXPECT_THROW(ShareTable::over({}, 3), Error);
  words[0] = 77;
  EXPECT_THROW(ShareTable::over(bytes, 3), Error);
}

}  // namespace
}  // namespace forebay
