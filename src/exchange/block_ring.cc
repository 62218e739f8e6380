#include "exchange/block_ring.hpp"

#include <algorithm>

namespace forebay {

BlockRing::BlockRing(std::size_t bytes, std::size_t blocks, std::size_t beside)
    : capacity_(std::max(bytes, kAlignment) / kAlignment * kAlignment),
      memory_(allocate(capacity_)),
      entries_(std::max<std::size_t>(blocks, 1)),
      beside_(beside) {}

BlockRing::Memory BlockRing::allocate(std::size_t bytes) {
  return Memory(static_cast<std::byte*>(::operator new (bytes, std::align_val_t{kAlignment})));
}

void BlockRing::leak_memory() {
  static_cast<void>(memory_.release());
  for (Entry& entry : entries_) static_cast<void>(entry.own.release());
}

/// Blocks without bytes take room too: so the offset of the oldest tells a full ring from others.
std::size_t BlockRing::room_for(std::uint64_t bytes) {
  return std::max<std::size_t>((bytes + kAlignment - 1) / kAlignment * kAlignment, kAlignment);
}

bool BlockRing::could_hold(std::uint64_t bytes) const { return bytes <= largest(); }

/// Moves the tail to where `room` bytes are free, if there are.
bool BlockRing::find_room(std::size_t room) {
  if (released_ == assigned_) tail_ = 0;
  if (released_ == assigned_) return room <= capacity_;
  const std::size_t head = at(released_).begin;
  if (tail_ <= head) return room <= head - tail_;  // wrapped around, or full
  if (room <= capacity_ - tail_) return true;
  if (room > head) return false;
  tail_ = 0;
  return true;
}

Block* BlockRing::assign(const Wanted& wanted, std::uint64_t bytes) {
  if (assigned_ - released_ == entries_.size() || !could_hold(bytes)) return nullptr;
  const bool beside = bytes > capacity_;
  if (beside && bytes > beside_ - used_beside_) return nullptr;
  const std::size_t room = room_for(beside ? 0 : bytes);
  if (!find_room(room)) return nullptr;
  Entry& entry = at(assigned_);
  if (beside) {
    entry.own = allocate(static_cast<std::size_t>(bytes));
    used_beside_ += bytes;
  }
  std::byte* const begin = beside ? entry.own.get() : memory_.get() + tail_;
  entry.block = {.wanted = wanted,
                 .bytes = {begin, static_cast<std::size_t>(bytes)},
                 .tag = BlockTag::assigned};
  entry.begin = tail_;
  tail_ += room;
  ++assigned_;
  return &entry.block;
}

void BlockRing::set_ready(std::size_t count) {
  for (; count > 0 && ready_ < assigned_; --count) at(ready_++).block.tag = BlockTag::ready;
}

const Block* BlockRing::take() { return taken_ < ready_ ? &at(taken_++).block : nullptr; }

const Block* BlockRing::next_to_take() const {
  return taken_ < assigned_ ? &at(taken_).block : nullptr;
}

void BlockRing::release(std::size_t count) {
  for (; count > 0 && released_ < taken_; --count) {
    Entry& entry = at(released_++);
    entry.block.tag = BlockTag::empty;
    if (!entry.own) continue;
    used_beside_ -= entry.block.bytes.size();
    entry.own.reset();
  }
}

}  // namespace forebay
