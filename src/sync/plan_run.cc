#include "sync/plan_run.hpp"

#include <algorithm>
#include <utility>

namespace forebay {
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
