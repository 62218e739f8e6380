// Few reads out of many extents, and the way back from these to bytes.
#include <gtest/gtest.h>

#include <random>

#include "format/sample_reader.hpp"
#include "tests/support/scale.hpp"

namespace forebay {
namespace {

using Extents = std::vector<FileExtent>;

FileExtent extent(std::uint64_t offset, std::uint64_t length) {
  return {.offset = offset, .length = length};
}

std::vector<PlacedExtent> placed(Extents extents, std::uint64_t gap) {
  std::ranges::sort(extents, {}, &FileExtent::offset);
  return place_extents(extents, gap);
}

/// Offset, length and place of each read.
std::vector<std::vector<std::uint64_t>> reads_of(const Extents& extents, std::uint64_t gap) {
  std::vector<std::vector<std::uint64_t>> reads;
  for (const PlacedExtent& read : placed(extents, gap)) {
    reads.push_back({read.extent.offset, read.extent.length, read.place});
  }
  return reads;
}

using Reads = std::vector<std::vector<std::uint64_t>>;

TEST(PlacedExtents, JoinsNeighboursAndSmallGaps) {
  EXPECT_EQ(reads_of({extent(0, 10), extent(10, 5), extent(18, 2)}, 3), (Reads{{0, 20, 0}}));
  EXPECT_EQ(reads_of({extent(0, 10), extent(14, 2)}, 3), (Reads{{0, 10, 0}, {14, 2, 10}}));
}

TEST(PlacedExtents, KeepsOutliersApart) {
  EXPECT_EQ(reads_of({extent(4096, 4096), extent(9 << 20, 4096), extent(0, 4096)}, 64 << 10),
            (Reads{{0, 8192, 0}, {9 << 20, 4096, 8192}}));
}

TEST(PlacedExtents, ExtentsThatOverlapAreReadOnce) {
  EXPECT_EQ(reads_of({extent(0, 100), extent(10, 20), extent(50, 80), extent(0, 100)}, 0),
            (Reads{{0, 130, 0}}));
}

TEST(PlacedExtents, NothingWantedIsNothingRead) {
  EXPECT_TRUE(reads_of({}, 10).empty());
  EXPECT_TRUE(reads_of({extent(5, 0)}, 10).empty());
}

TEST(PlacedExtents, EveryExtentIsFoundWhereItWasPut) {
  std::mt19937_64 random(3);
  const auto pick = [&random](std::uint64_t least, std::uint64_t most) {
    return std::uniform_int_distribution<std::uint64_t>(least, most)(random);
  };
  std::vector<std::byte> file(5000);
  for (auto& byte : file) byte = static_cast<std::byte>(pick(0, 255));
  for (int round = 0; round < test::random_cases(300); ++round) {
    Extents wanted;
    for (std::uint64_t i = pick(0, 20); i > 0; --i) {
      const std::uint64_t offset = pick(0, 4990);
      wanted.push_back(extent(offset, pick(1, std::min<std::uint64_t>(300, 5000 - offset))));
    }
    const auto reads = placed(wanted, pick(0, 100));
    std::vector<std::byte> memory(bytes_of(reads));
    std::uint64_t last_end = 0;
    for (const PlacedExtent& read : reads) {
      ASSERT_TRUE(last_end == 0 || read.extent.offset > last_end);
      last_end = read.extent.offset + read.extent.length;
      std::copy_n(file.begin() + static_cast<std::ptrdiff_t>(read.extent.offset),
                  read.extent.length, memory.begin() + static_cast<std::ptrdiff_t>(read.place));
    }
    const PlacedBytes bytes(reads, memory);
    for (const FileExtent& one : wanted) {
      const auto found = bytes.at(0, one.offset, one.length);
      ASSERT_TRUE(std::equal(found.begin(), found.end(),
                             file.begin() + static_cast<std::ptrdiff_t>(one.offset)));
    }
  }
}

TEST(PlacedExtents, BytesThatNobodyAskedForAreAMismatch) {
  const auto reads = placed({extent(100, 50), extent(1000, 50)}, 0);
  const std::vector<std::byte> memory(bytes_of(reads));
  const PlacedBytes bytes(reads, memory);
  EXPECT_NO_THROW(bytes.at(0, 1000, 50));
  for (const FileExtent& wrong :
       {extent(0, 1), extent(99, 2), extent(149, 2), extent(150, 1), extent(2000, 1)}) {
    EXPECT_THROW(bytes.at(0, wrong.offset, wrong.length), IndexMismatch) << wrong.offset;
  }
  EXPECT_THROW(bytes.at(1, 1000, 50), IndexMismatch) << "another file";
  EXPECT_THROW(PlacedBytes({}, {}).at(0, 0, 1), IndexMismatch);
}

}  // namespace
}  // namespace forebay
