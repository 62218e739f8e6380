// Tensors that ranks have agreed on before, each with a bit: whether one is ready everywhere then
// takes one bitwise allreduce instead of a visit to the coordinator (paper 002, 6.2.2).
//
//   slots   0: conv1   1: fc   2: -   3: bn1          equal on all ranks at every end of a cycle
//   age     bn1 < conv1 < fc                          the last one makes room for a new tensor
//
// Equal, because all ranks change it only by what all have agreed on, in that order.
#pragma once

#include <cstddef>
#include <list>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "sync/request.hpp"

namespace forebay {

/// Of one thread.
class ResponseCache {
 public:
  using Slot = std::size_t;

  explicit ResponseCache(std::size_t capacity) : capacity_(capacity) {}

  /// One more than the largest slot in use.
  std::size_t slots() const { return signatures_.size(); }
  std::optional<Slot> find(const std::string& name) const;
  /// Empty where the slot is.
  const std::optional<Signature>& at(Slot slot) const { return signatures_[slot]; }

  /// Puts it in as the youngest; tells whether another one had to go.
  bool put(const Signature& signature);
  /// Makes it the youngest.
  void touch(Slot slot);
  void erase(Slot slot);
  void clear();

 private:
  Slot take_slot();

  std::size_t capacity_;
  std::vector<std::optional<Signature>> signatures_;
  std::vector<std::list<Slot>::iterator> places_;  ///< of each slot in ages_
  std::list<Slot> ages_;                           ///< youngest first
  std::unordered_map<std::string, Slot> by_name_;
};

}  // namespace forebay
