// What a rank tells the others in one bitwise AND: a few facts, and which known tensors it has.
//
//   word 0   facts   words 1 ...   one bit for each slot of the response cache
//
// AND is true where all ranks say so; facts of which one rank is enough are told the other way
// round.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "comm/nonblocking.hpp"

namespace forebay {

class ReadyBits {
 public:
  enum Fact : std::uint64_t {
    nothing_new = 1,
    nothing_invalid = 2,
    closing = 4,
    nobody_closes = 8
  };

  ReadyBits(std::size_t slots, std::uint64_t facts, bool all_ready)
      : words_(std::make_shared<std::vector<std::uint64_t>>(
            1 + (slots + 63) / 64, all_ready ? ~std::uint64_t{0} : std::uint64_t{0})),
        slots_(slots) {
    words_->front() = facts;
  }
  ReadyBits() : ReadyBits(0, 0, false) {}

  void clear_fact(Fact fact) { words_->front() &= ~std::uint64_t{fact}; }
  bool fact(Fact fact) const { return (words_->front() & fact) != 0; }
  void set(std::size_t slot) { word(slot) |= bit(slot); }
  void clear(std::size_t slot) { word(slot) &= ~bit(slot); }

  /// Ascending.
  std::vector<std::size_t> set_slots() const {
    std::vector<std::size_t> set;
    for (std::size_t slot = 0; slot < slots_; ++slot) {
      if ((word(slot) & bit(slot)) != 0) set.push_back(slot);
    }
    return set;
  }

  SharedBytes bytes() const { return {words_, std::as_writable_bytes(std::span(*words_))}; }

 private:
  std::uint64_t& word(std::size_t slot) const { return (*words_)[1 + slot / 64]; }
  static std::uint64_t bit(std::size_t slot) { return std::uint64_t{1} << (slot % 64); }

  std::shared_ptr<std::vector<std::uint64_t>> words_;
  std::size_t slots_;
};

}  // namespace forebay
