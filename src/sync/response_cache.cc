#include "sync/response_cache.hpp"

#include <algorithm>

namespace forebay {

std::optional<ResponseCache::Slot> ResponseCache::find(const std::string& name) const {
  const auto found = by_name_.find(name);
  if (found == by_name_.end()) return std::nullopt;
  return found->second;
}

bool ResponseCache::put(const Signature& signature) {
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

ResponseCache::Slot ResponseCache::take_slot() {
  if (by_name_.size() < signatures_.size()) {
    const auto empty = std::ranges::find_if(signatures_, [](const auto& one) { return !one; });
    return static_cast<Slot>(empty - signatures_.begin());
  }
  signatures_.emplace_back();
  places_.emplace_back();
  return signatures_.size() - 1;
}

void ResponseCache::touch(Slot slot) { ages_.splice(ages_.begin(), ages_, places_[slot]); }

void ResponseCache::erase(Slot slot) {
  by_name_.erase(signatures_[slot]->tensor.name);
  ages_.erase(places_[slot]);
  signatures_[slot].reset();
}

}  // namespace forebay
