#include "exchange/read_buffer.hpp"

#include <gtest/gtest.h>

#include <cstring>
#include <deque>
#include <random>

#include "tests/support/scale.hpp"

namespace forebay {
namespace {

/// Writes each block's number all over it, and finds it there for as long as it is held.
class NumberedBlocks {
 public:
  explicit NumberedBlocks(BlockRing& ring) : ring_(ring) {}

  bool assign(std::uint64_t bytes) {
    Block* const block = ring_.assign({.sample = next_}, bytes);
    if (block == nullptr) return false;
    EXPECT_EQ(block->tag, BlockTag::assigned);
    EXPECT_EQ(block->bytes.size(), bytes);
    if (bytes > 0) std::memset(block->bytes.data(), static_cast<int>(next_ % 256), bytes);
    ++next_;
    return true;
  }
  bool take() {
    const Block* const block = ring_.take();
    if (block == nullptr) return false;
    EXPECT_EQ(block->tag, BlockTag::ready);
    EXPECT_EQ(block->wanted.sample, taken_++);
    held_.push_back(block);
    return true;
  }
  void release() {
    if (held_.empty()) return;
    const Block& block = *held_.front();
    for (const std::byte value : block.bytes) {
      ASSERT_EQ(value, static_cast<std::byte>(block.wanted.sample % 256));
    }
    held_.pop_front();
    ring_.release(1);
  }

 private:
  BlockRing& ring_;
  std::uint64_t next_ = 0;
  std::uint64_t taken_ = 0;
  std::deque<const Block*> held_;
};

TEST(BlockRing, KeepsEveryBlockUntilItIsReleased) {
  std::mt19937_64 random(3);
  for (int round = 0; round < test::random_cases(30); ++round) {
    const std::size_t bytes = 64 + random() % 4000, beside = random() % 3 * 3000;
    BlockRing ring(bytes, 1 + random() % 20, beside);
    NumberedBlocks blocks(ring);
    for (int step = 0; step < 2000; ++step) {
      switch (random() % 4) {
        case 0:
          blocks.assign(random() % 5 == 0 ? 0 : random() % ring.largest());
          break;
        case 1:
          ring.set_ready(random() % 3);
          break;
        case 2:
          blocks.take();
          break;
        default:
          blocks.release();
      }
    }
  }
}

TEST(BlockRing, HoldsOneBlockAsLargeAsItself) {
  BlockRing ring(1024, 4);
  EXPECT_TRUE(ring.could_hold(1024));
  EXPECT_FALSE(ring.could_hold(1025));
  EXPECT_FALSE(ring.could_hold(~std::uint64_t{0}));
  EXPECT_EQ(ring.assign({}, 1025), nullptr);
  for (int i = 0; i < 3; ++i) {
    ASSERT_NE(ring.assign({}, 1024), nullptr);
    EXPECT_EQ(ring.assign({}, 1), nullptr);
    ring.set_ready(1);
    ASSERT_NE(ring.take(), nullptr);
    ring.release(1);
  }
}

TEST(BlockRing, LargerBlocksHaveMemoryOfTheirOwnAndKeepTheirPlace) {
  BlockRing ring(1024, 8, 5000);
  EXPECT_TRUE(ring.could_hold(5000));
  EXPECT_FALSE(ring.could_hold(5001));
  for (int i = 0; i < 3; ++i) {
    ASSERT_NE(ring.assign({.sample = 1}, 100), nullptr);
    ASSERT_NE(ring.assign({.sample = 2}, 3000), nullptr);
    EXPECT_EQ(ring.assign({.sample = 3}, 3000), nullptr) << "more than all of 5000";
    ASSERT_NE(ring.assign({.sample = 3}, 2000), nullptr);
    ring.set_ready(3);
    for (std::uint64_t sample = 1; sample <= 3; ++sample) {
      EXPECT_EQ(ring.take()->wanted.sample, sample);
    }
    ring.release(3);
  }
}

TEST(BlockRing, EmptyBlocksAreBoundedToo) {
  BlockRing ring(1 << 20, 3);
  for (int i = 0; i < 3; ++i) EXPECT_NE(ring.assign({}, 0), nullptr);
  EXPECT_EQ(ring.assign({}, 0), nullptr);
}

}  // namespace
}  // namespace forebay
