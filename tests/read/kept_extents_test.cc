#include "read/kept_extents.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

namespace forebay {
namespace {

class KeptExtentsTest : public testing::Test {
 protected:
  KeptExtentsTest() {
    for (std::size_t i = 0; i < file_.size(); ++i) file_[i] = static_cast<std::byte>(i % 251);
  }
  std::span<const std::byte> bytes(const FileExtent& extent) const {
    return std::span(file_).subspan(extent.offset, extent.length);
  }
  void keep(KeptExtents& kept, const FileExtent& extent) const {
    if (kept.promise(extent)) kept.keep(extent, bytes(extent));
  }
  bool equal(std::span<const std::byte> found, const FileExtent& extent) const {
    return std::ranges::equal(found, bytes(extent));
  }

  std::vector<std::byte> file_ = std::vector<std::byte>(1000);
};

TEST_F(KeptExtentsTest, WhatIsKeptIsFoundFromItsBegin) {
  KeptExtents kept(100);
  const FileExtent extent{.offset = 300, .length = 60};
  EXPECT_FALSE(kept.holds(extent));
  keep(kept, extent);
  EXPECT_TRUE(kept.holds(extent));
  EXPECT_TRUE(equal(kept.at(0, 300, 60), extent));
  EXPECT_TRUE(equal(kept.at(0, 300, 20), {.offset = 300, .length = 20}));
  EXPECT_TRUE(kept.at(0, 300, 61).empty());
  EXPECT_TRUE(kept.at(0, 301, 10).empty());
}

TEST_F(KeptExtentsTest, KeepsNoMoreThanItMay) {
  KeptExtents kept(100);
  for (std::uint64_t offset = 0; offset < 1000; offset += 40) {
    keep(kept, {.offset = offset, .length = 40});
  }
  EXPECT_TRUE(kept.holds({.offset = 40, .length = 40}));
  EXPECT_FALSE(kept.holds({.offset = 80, .length = 40}));
  EXPECT_TRUE(kept.enabled());
  EXPECT_FALSE(KeptExtents(0).enabled());
}

TEST_F(KeptExtentsTest, WhatIsPromisedHasRoomAndIsThereOnceKept) {
  KeptExtents kept(100);
  const FileExtent first{.offset = 0, .length = 60};
  const FileExtent second{.offset = 60, .length = 60};
  EXPECT_TRUE(kept.promise(first));
  EXPECT_FALSE(kept.promise(first));
  EXPECT_FALSE(kept.promise(second));
  kept.keep(second, bytes(second));
  EXPECT_FALSE(kept.holds(second));
  EXPECT_TRUE(kept.holds(first));
  EXPECT_TRUE(kept.at(0, 0, 60).empty());
  kept.keep(first, bytes(first));
  EXPECT_TRUE(equal(kept.at(0, 0, 60), first));
}

TEST_F(KeptExtentsTest, ForgottenPromisesGiveTheirRoomBack) {
  KeptExtents kept(100);
  const FileExtent stays{.offset = 0, .length = 40};
  const FileExtent goes{.offset = 40, .length = 60};
  const FileExtent comes{.offset = 100, .length = 60};
  keep(kept, stays);
  EXPECT_TRUE(kept.promise(goes));
  kept.forget_promises();
  EXPECT_FALSE(kept.holds(goes));
  EXPECT_TRUE(equal(kept.at(0, 0, 40), stays));
  EXPECT_TRUE(kept.promise(comes));
}

TEST_F(KeptExtentsTest, APlanThatLeavesThemOutIsCompleteWithThem) {
  KeptExtents kept(100);
  const FileExtent leaf{.offset = 500, .length = 50};
  keep(kept, leaf);
  const std::vector<FileExtent> extents{{.offset = 100, .length = 20},
                                        {.offset = 700, .length = 30}};
  const auto reads = place_extents(extents, 0);
  std::vector<std::byte> memory(bytes_of(reads));
  for (const PlacedExtent& read : reads) {
    std::ranges::copy(bytes(read.extent), memory.begin() + static_cast<std::ptrdiff_t>(read.place));
  }
  const BytesWithKept all(reads, memory, kept);
  for (const FileExtent& extent : {leaf, extents[0], leaf, extents[1], leaf, extents[0]}) {
    EXPECT_TRUE(equal(all.at(0, extent.offset, extent.length), extent));
  }
  EXPECT_THROW(all.at(0, 560, 5), IndexMismatch);
  EXPECT_THROW(PlacedBytes(reads, memory).at(0, 500, 50), IndexMismatch);
}

}  // namespace
}  // namespace forebay
