#include "exchange/block_ring.hpp"

#include <algorithm>

namespace forebay {

BlockRing::BlockRing(std::size_t bytes, std::size_t blocks)
    : capacity_(std::max(bytes, kAlignment) / kAlignment * kAlignment),
      memory_(static_cast<std::byte*>(::operator new (capacity_, std::align_val_t{kAlignment}))),
      blocks_(std::max<std::size_t>(blocks, 1)) {}

/// Blocks without bytes take room too: so the offset of the oldest tells a full ring from others.
std::size_t BlockRing::room_for(std::uint64_t bytes) {
  return std::max<std::size_t>((bytes + kAlignment - 1) / kAlignment * kAlignment, kAlignment);
}

bool BlockRing::could_hold(std::uint64_t bytes) const {
  return bytes <= capacity_ && room_for(bytes) <= capacity_;
}

/// Moves the tail to where `room` bytes are free, if there are.
bool BlockRing::find_room(std::size_t room) {
  if (released_ == assigned_) tail_ = 0;
  if (released_ == assigned_) return room <= capacity_;
  const auto head = static_cast<std::size_t>(at(released_).bytes.data() - memory_.get());
  if (tail_ <= head) return room <= head - tail_;  // wrapped around, or full
  if (room <= capacity_ - tail_) return true;
  if (room > head) return false;
  tail_ = 0;
  return true;
}

Block* BlockRing::assign(const Wanted& wanted, std::uint64_t bytes) {
  if (assigned_ - released_ == blocks_.size() || !could_hold(bytes)) return nullptr;
  const std::size_t room = room_for(bytes);
  if (!find_room(room)) return nullptr;
  Block& block = at(assigned_++);
  block = {.wanted = wanted,
           .bytes = {memory_.get() + tail_, static_cast<std::size_t>(bytes)},
           .tag = BlockTag::assigned};
  tail_ += room;
  return &block;
}

void BlockRing::set_ready(std::size_t count) {
  for (; count > 0 && ready_ < assigned_; --count) at(ready_++).tag = BlockTag::ready;
}

const Block* BlockRing::take() { return taken_ < ready_ ? &at(taken_++) : nullptr; }

const Block* BlockRing::next_to_take() const { return taken_ < assigned_ ? &at(taken_) : nullptr; }

void BlockRing::release(std::size_t count) {
  for (; count > 0 && released_ < taken_; --count) at(released_++).tag = BlockTag::empty;
}

}  // namespace forebay
