// The read buffer of DeepIO as a ring of tagged blocks (Zhu et al., MASCOTS 2018, section III.A,
// figure 5): one block a sample, of the sample's size, in the order in which samples are consumed.
//
//   released      taken         ready         assigned        free
//   ...........|  held by the |  filled, not |  being filled |  ............   (wraps around)
//                 consumer       taken yet
//   tag: empty    ready          ready           assigned        empty
//
// Memory is given out in the same order; a block that does not fit before the end begins anew at
// the front. Not synchronized.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>
#include <span>
#include <vector>

#include "exchange/fetch_plan.hpp"

namespace forebay {

enum class BlockTag : std::uint8_t { empty, assigned, ready };

struct Block {
  Wanted wanted;
  std::span<std::byte> bytes;
  BlockTag tag = BlockTag::empty;
};

class BlockRing {
 public:
  /// Memory for `bytes` in at most `blocks` blocks.
  BlockRing(std::size_t bytes, std::size_t blocks);

  /// Whether a block of `bytes` fits when all others are empty.
  bool could_hold(std::uint64_t bytes) const;
  /// The next block, assigned to `wanted`; null when there is no room now.
  Block* assign(const Wanted& wanted, std::uint64_t bytes);
  /// The oldest `count` assigned blocks are ready.
  void set_ready(std::size_t count);
  /// The next block that is ready and was not taken; null when there is none.
  const Block* take();
  /// The next one to take, whatever its tag; null when nothing is assigned.
  const Block* next_to_take() const;
  /// The oldest `count` taken blocks are empty.
  void release(std::size_t count);

  std::uint64_t taken() const { return taken_ - released_; }
  bool none_ready() const { return taken_ == ready_; }
  std::size_t capacity() const { return capacity_; }
  /// Leaves the memory to whoever still writes into it.
  void leak_memory() { static_cast<void>(memory_.release()); }

 private:
  static constexpr std::size_t kAlignment = 64;  // for vector loads
  struct Free {
    void operator()(std::byte* memory) const {
      ::operator delete (memory, std::align_val_t{kAlignment});
    }
  };

  static std::size_t room_for(std::uint64_t bytes);
  Block& at(std::uint64_t number) { return blocks_[number % blocks_.size()]; }
  const Block& at(std::uint64_t number) const { return blocks_[number % blocks_.size()]; }
  bool find_room(std::size_t room);

  std::size_t capacity_;
  std::unique_ptr<std::byte, Free> memory_;
  std::vector<Block> blocks_;
  std::size_t tail_ = 0;  ///< offset of the next block
  // Blocks are numbered from the beginning; these only grow.
  std::uint64_t assigned_ = 0;
  std::uint64_t ready_ = 0;
  std::uint64_t taken_ = 0;
  std::uint64_t released_ = 0;
};

}  // namespace forebay
