// The read buffer of DeepIO as a ring of tagged blocks (Zhu et al., MASCOTS 2018, section III.A,
// figure 5): one block a sample, of the sample's size, in the order in which samples are consumed.
//
//   released      taken         ready         assigned        free
//   ...........|  held by the |  filled, not |  being filled |  ............   (wraps around)
//                 consumer       taken yet
//   tag: empty    ready          ready           assigned        empty
//
// Memory is given out in the same order; a block that does not fit before the end begins anew at
// the front. A block larger than the whole ring has memory of its own, until it is released, and
// takes the least room in the ring to keep its place. Not synchronized.
#pragma once

#include <algorithm>
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
  /// Memory for `bytes` in at most `blocks` blocks. Blocks that are larger have up to `beside`
  /// bytes together.
  BlockRing(std::size_t bytes, std::size_t blocks, std::size_t beside = 0);

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
  /// The largest block that could_hold() says yes to.
  std::size_t largest() const { return std::max(capacity_, beside_); }
  /// Leaves the memory to whoever still writes into it.
  void leak_memory();

 private:
  static constexpr std::size_t kAlignment = 64;  // for vector loads
  struct Free {
    void operator()(std::byte* memory) const {
      ::operator delete (memory, std::align_val_t{kAlignment});
    }
  };

  using Memory = std::unique_ptr<std::byte, Free>;
  /// A block, and where it is.
  struct Entry {
    Block block;
    std::size_t begin = 0;  ///< offset in the ring
    Memory own;
  };

  static Memory allocate(std::size_t bytes);
  static std::size_t room_for(std::uint64_t bytes);
  Entry& at(std::uint64_t number) { return entries_[number % entries_.size()]; }
  const Entry& at(std::uint64_t number) const { return entries_[number % entries_.size()]; }
  bool find_room(std::size_t room);

  std::size_t capacity_;
  Memory memory_;
  std::vector<Entry> entries_;
  std::size_t beside_;
  std::size_t used_beside_ = 0;
  std::size_t tail_ = 0;  ///< offset of the next block
  // Blocks are numbered from the beginning; these only grow.
  std::uint64_t assigned_ = 0;
  std::uint64_t ready_ = 0;
  std::uint64_t taken_ = 0;
  std::uint64_t released_ = 0;
};

}  // namespace forebay
