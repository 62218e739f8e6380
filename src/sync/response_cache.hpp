// Tensors that ranks have agreed on before, each with a bit: whether one is ready everywhere then
// takes one bitwise allreduce instead of a visit to the coordinator (paper 002, 6.2.2).
//
//   slots   0: conv1   1: fc   2: -   3: bn1          equal on all ranks at every end of a cycle
//   age     bn1 < conv1 < fc                          the last one makes room for a new tensor
//
// Equal, because all ranks change it only by what all have agreed on, in that order.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <list>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "comm/nonblocking.hpp"
#include "sync/request.hpp"

namespace forebay {

/// Of one thread.
class ResponseCache {
 public:
  using Slot = std::size_t;

  explicit ResponseCache(std::size_t capacity) : capacity_(capacity) {}

  /// One more than the largest slot in use.
  std::size_t slots() const { return signatures_.size(); }
  std::optional<Slot> find(const std::string& name) const {
    const auto found = by_name_.find(name);
    if (found == by_name_.end()) return std::nullopt;
    return found->second;
  }

  /// Empty where the slot is.
  const std::optional<Signature>& at(Slot slot) const { return signatures_[slot]; }

  /// Puts it in as the youngest; tells whether another one had to go.
  bool put(const Signature& signature) {
    if (capacity_ == 0) return false;
    const auto& name = signature.tensor.name;
    if (const auto slot = find(name)) {
      signatures_[*slot] = signature;
      touch(*slot);
      return false;
    }
    const bool full = by_name_.size() == capacity_;
    if (full) erase(ages_.back());
    const Slot slot = take_slot();
    signatures_[slot] = signature;
    places_[slot] = ages_.insert(ages_.begin(), slot);
    by_name_[name] = slot;
    return full;
  }

  /// Makes it the youngest.
  void touch(Slot slot) { ages_.splice(ages_.begin(), ages_, places_[slot]); }
  void erase(Slot slot) {
    by_name_.erase(signatures_[slot]->tensor.name);
    ages_.erase(places_[slot]);
    signatures_[slot].reset();
  }

 private:
  Slot take_slot() {
    if (by_name_.size() < signatures_.size()) {
      const auto empty = std::ranges::find_if(signatures_, [](const auto& one) { return !one; });
      return static_cast<Slot>(empty - signatures_.begin());
    }
    signatures_.emplace_back();
    places_.emplace_back();
    return signatures_.size() - 1;
  }

  std::size_t capacity_;
  std::vector<std::optional<Signature>> signatures_;
  std::vector<std::list<Slot>::iterator> places_;  ///< of each slot in ages_
  std::list<Slot> ages_;                           ///< youngest first
  std::unordered_map<std::string, Slot> by_name_;
};

// What a rank tells the others in one bitwise AND: a few facts, and which known tensors it has.
//
//   word 0   facts   words 1 ...   one bit for each slot of the response cache
//
// AND is true where all ranks say so; facts of which one rank is enough are told the other way
// round.

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
