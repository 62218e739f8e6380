#include "sync/plan_maker.hpp"

#include <utility>

#include "comm/messages.hpp"
#include "core/log.hpp"
#include "forebay/error.hpp"

namespace forebay {

std::vector<std::byte> encode(const PlanProposal& proposal) {
  MessageWriter writer;
  writer.number(proposal.start.step);
  writer.number(std::uint64_t{proposal.start.ordinals.size()});
  for (const auto& [name, ordinal] : proposal.start.ordinals) {
    writer.text(name);
    writer.number(ordinal);
  }
  std::vector<std::byte> message = writer.take();
  const auto plan = encode(proposal.plan);
  message.insert(message.end(), plan.begin(), plan.end());
  return message;
}

PlanProposal decode_proposal(std::span<const std::byte> message) {
  MessageReader reader(message);
  PlanProposal proposal;
  proposal.start.step = reader.number<std::uint64_t>();
  for (auto names = reader.number<std::uint64_t>(); names > 0; --names) {
    std::string name = reader.text();
    proposal.start.ordinals[std::move(name)] = reader.number<std::uint64_t>();
  }
  proposal.plan = decode_plan(reader.rest());
  return proposal;
}

std::optional<PlanProposal> PlanMaker::take(int rank, StepRecord record, const PlanTable* last) {
  const std::uint64_t step = ++steps_of_[rank];
  auto& by_rank = records_[step];
  by_rank[rank] = std::move(record);
  if (by_rank.size() != ranks_) return {};
  std::vector<StepRecord> records;
  for (auto& [from, one] : by_rank) records.push_back(std::move(one));
  records_.erase(step);
  looked_at_ = step;
  return look_at(records, last);
}

std::optional<PlanProposal> PlanMaker::look_at(std::span<const StepRecord> by_rank,
                                               const PlanTable* last) {
  auto merged = merge(by_rank);
  const auto before =
      std::exchange(digest_before_, merged ? std::optional(merged->digest) : std::nullopt);
  if (!merged) return {};
  PlanProposal proposal{.start = {std::move(merged->ordinals), looked_at_}};
  if (last != nullptr && last->digest() == merged->digest) {
    proposal.plan = last->plan();
    return proposal;
  }
  if (last != nullptr && before != merged->digest) return {};
  try {
    proposal.plan = plan_transfers(merged->graph, {}, fusion_bytes_);
  } catch (const Error& error) {
    log(LogLevel::debug, "a step cannot be planned: {}", error.what());
    return {};
  }
  return proposal;
}

void PlanMaker::clear() {
  steps_of_.clear();
  records_.clear();
  looked_at_ = 0;
  digest_before_.reset();
}

}  // namespace forebay
