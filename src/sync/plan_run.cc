#include "sync/plan_run.hpp"

#include <algorithm>
#include <map>
#include <utility>

#include "core/mix.hpp"
#include "sync/text_digest.hpp"

namespace forebay {

PlanTable::PlanTable(TransferPlan plan) : plan_(std::move(plan)) {
  std::map<std::string_view, const PlannedTensor*> by_name;
  for (std::uint32_t buffer = 0; buffer < plan_.buffers.size(); ++buffer) {
    for (std::uint32_t slot = 0; slot < plan_.buffers[buffer].size(); ++slot) {
      const PlannedTensor& tensor = plan_.buffers[buffer][slot];
      places_.emplace(tensor.name, Place{buffer, slot});
      by_name.emplace(tensor.name, &tensor);
    }
  }
  for (const auto& [name, tensor] : by_name) {
    digest_ = digest_of(mix_key({digest_, digest_of(name)}), tensor->type, tensor->reduction,
                        tensor->shape);
  }
}

std::optional<PlanTable::Place> PlanTable::find(const Request& request) const {
  if (request.operation != SyncOperation::allreduce) return {};
  const auto found = places_.find(request.tensor.name);
  if (found == places_.end()) return {};
  const PlannedTensor& tensor = plan_.buffers[found->second.buffer][found->second.slot];
  const bool same = tensor.type == request.tensor.type && tensor.reduction == request.reduction &&
                    tensor.shape == request.tensor.shape;
  return same ? std::optional(found->second) : std::nullopt;
}

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

namespace {

std::uint64_t elements_of(const PlannedTensor& tensor) {
  std::uint64_t elements = 1;
  for (const std::uint64_t extent : tensor.shape) elements *= extent;
  return elements;
}

}  // namespace

PlanRun::PlanRun(std::shared_ptr<Slots> slots, const std::set<std::string>& left_out)
    : slots_(std::move(slots)) {
  if (!left_out.empty()) {
    for (const auto& buffer : table().plan().buffers) {
      auto& left = left_out_.emplace_back();
      for (const PlannedTensor& tensor : buffer) left.push_back(left_out.contains(tensor.name));
    }
  }
  settle();
}

const Slots::Left& PlanRun::left() const {
  static const Slots::Left none;
  return left_out_.empty() ? none : left_out_[buffer_];
}

bool PlanRun::nothing_left() const {
  const Slots::Left& out = left();
  return !out.empty() && std::find(out.begin(), out.end(), false) == out.end();
}

void PlanRun::advance() {
  if (++buffer_ < table().plan().buffers.size()) return;
  buffer_ = 0;
  ++rounds_;
  left_out_.clear();
}

void PlanRun::settle() {
  while (nothing_left()) advance();
  slots_->wait_for(buffer_, !left_out_.empty());
}

bool PlanRun::ready() const {
  return !table().plan().buffers.empty() && slots_->full(buffer_, left());
}

std::optional<Transfer> PlanRun::issue() {
  auto requests = slots_->take(buffer_, left());
  const auto is_there = [](const auto& request) { return request != nullptr; };
  if (std::none_of(requests.begin(), requests.end(), is_there)) return {};
  Transfer transfer = transfer_of(std::move(requests));
  ++issued_;
  advance();
  settle();
  return transfer;
}

Transfer PlanRun::issue_neutral() {
  Transfer transfer = transfer_of({});
  ++issued_;
  advance();
  settle();
  return transfer;
}

Transfer PlanRun::transfer_of(std::vector<std::shared_ptr<Request>> requests) const {
  const auto& buffer = table().plan().buffers[buffer_];
  const Slots::Left& out = left();
  Transfer transfer{.type = buffer[0].type, .reduction = buffer[0].reduction};
  for (std::size_t slot = 0; slot < buffer.size(); ++slot) {
    if (!out.empty() && out[slot]) continue;
    transfer.parts.push_back(
        {requests.empty() ? nullptr : std::move(requests[slot]), elements_of(buffer[slot])});
  }
  // Without a byte to move ranks would not meet, and a transfer would be complete for some of them
  // that others have not issued: see PlanExit.
  const bool moves = std::any_of(transfer.parts.begin(), transfer.parts.end(),
                                 [](const TransferPart& part) { return part.elements > 0; });
  if (!moves) transfer.operation = SyncOperation::barrier;
  return transfer;
}

std::string PlanRun::missing() const {
  if (table().plan().buffers.empty()) return {};
  const auto& buffer = table().plan().buffers[buffer_];
  for (std::uint32_t slot = 0; slot < buffer.size(); ++slot) {
    if (!left().empty() && left()[slot]) continue;
    if (!slots_->has({buffer_, slot})) return buffer[slot].name;
  }
  return buffer[0].name;
}

}  // namespace forebay
