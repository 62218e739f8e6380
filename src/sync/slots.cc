#include "sync/slots.hpp"

#include <utility>

namespace forebay {
namespace {

bool is_left(const Slots::Left& left, std::size_t slot) { return !left.empty() && left[slot]; }

}  // namespace

Slots::Slots(std::shared_ptr<const PlanTable> table) : table_(std::move(table)) {
  for (const auto& buffer : table_->plan().buffers) {
    buffers_.push_back(std::make_unique<Buffer>(buffer.size()));
  }
}

Slots::~Slots() { take_all(); }

bool Slots::put(Place place, std::shared_ptr<Request> request) {
  Buffer& buffer = *buffers_[place.buffer];
  buffer.slots[place.slot].store(new std::shared_ptr<Request>(std::move(request)));
  ++filled_;
  const std::uint32_t count = ++buffer.count;
  const std::uint32_t awaited = awaited_.load();
  return awaited == kAnyBuffer || (awaited == place.buffer && count == buffer.slots.size());
}

std::shared_ptr<Request> Slots::withdraw(Place place) { return empty(place); }

std::shared_ptr<Request> Slots::empty(Place place) {
  Buffer& buffer = *buffers_[place.buffer];
  const std::unique_ptr<std::shared_ptr<Request>> owner(buffer.slots[place.slot].exchange(nullptr));
  if (owner == nullptr) return nullptr;
  --buffer.count;
  --filled_;
  return std::move(*owner);
}

void Slots::wait_for(std::uint32_t buffer, bool any_request) {
  awaited_ = any_request ? kAnyBuffer : buffer;
}

bool Slots::full(std::uint32_t buffer, const Left& left) const {
  const Buffer& one = *buffers_[buffer];
  if (left.empty()) return one.count.load() == one.slots.size();
  for (std::size_t slot = 0; slot < one.slots.size(); ++slot) {
    if (!left[slot] && one.slots[slot].load() == nullptr) return false;
  }
  return true;
}

bool Slots::has(Place place) const {
  return buffers_[place.buffer]->slots[place.slot].load() != nullptr;
}

std::vector<std::shared_ptr<Request>> Slots::take(std::uint32_t buffer, const Left& left) {
  const auto size = static_cast<std::uint32_t>(buffers_[buffer]->slots.size());
  std::vector<std::shared_ptr<Request>> taken(size);
  bool whole = true;
  for (std::uint32_t slot = 0; slot < size && whole; ++slot) {
    if (is_left(left, slot)) continue;
    taken[slot] = empty({buffer, slot});
    whole = taken[slot] != nullptr;
  }
  if (whole) return taken;
  for (std::uint32_t slot = 0; slot < size; ++slot) {
    if (taken[slot] != nullptr) put({buffer, slot}, std::move(taken[slot]));
  }
  return std::vector<std::shared_ptr<Request>>(size);
}

std::vector<std::shared_ptr<Request>> Slots::take_all() {
  std::vector<std::shared_ptr<Request>> taken;
  for (std::uint32_t buffer = 0; buffer < buffers_.size(); ++buffer) {
    for (std::uint32_t slot = 0; slot < buffers_[buffer]->slots.size(); ++slot) {
      if (auto request = empty({buffer, slot})) taken.push_back(std::move(request));
    }
  }
  return taken;
}

}  // namespace forebay
