#include "sync/plan_maker.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "comm/values.hpp"
#include "core/log.hpp"
#include "core/mix.hpp"
#include "forebay/error.hpp"
#include "sync/text_digest.hpp"

namespace forebay {

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

namespace {

/// One number for each node, then one for each fetch.
std::vector<std::uint64_t> digests_of(const Graph& graph, std::span<const std::string> fetches) {
  auto all = digests(graph);
  for (const std::string& fetch : fetches) all.push_back(digest_of(fetch));
  return all;
}

std::uint64_t fold(std::span<const std::uint64_t> digests) {
  std::uint64_t folded = digests.size();
  for (const std::uint64_t digest : digests) folded = mix_key({folded, digest});
  return folded;
}

/// `by_rank`: digests_of() of all ranks; `graph` is rank 0's.
std::string describe_difference(const Graph& graph,
                                const std::vector<std::vector<std::byte>>& by_rank) {
  const auto& first = by_rank[0];
  for (std::size_t rank = 1; rank < by_rank.size(); ++rank) {
    const auto [at, there] =
        std::mismatch(first.begin(), first.end(), by_rank[rank].begin(), by_rank[rank].end());
    if (at == first.end() && there == by_rank[rank].end()) continue;
    const auto node = static_cast<std::size_t>(at - first.begin()) / sizeof(std::uint64_t);
    if (node >= graph.nodes().size()) {
      return fmt::format(
          "those of ranks 0 and {} are equal up to node {}, the last of rank 0; "
          "what follows, or what is fetched, is not",
          rank, graph.nodes().size());
    }
    return fmt::format(
        "node {} ('{}' on rank 0), what it transfers, or what it needs, is not the "
        "same on rank {}",
        node, printable_key(graph.nodes()[node].name), rank);
  }
  return "they could not be compared";
}

}  // namespace

GraphPlans::GraphPlans(Communicator& comm, std::optional<std::uint64_t> fusion_bytes)
    : comm_(comm.split(0, comm.rank())), fusion_bytes_(fusion_bytes) {}

std::shared_ptr<const PlanTable> GraphPlans::of(const Graph& graph,
                                                std::span<const std::string> fetches) {
  const auto digests = digests_of(graph, fetches);
  compare(graph, digests);
  auto& table = tables_[fold(digests)];
  if (table == nullptr) {
    table = std::make_shared<const PlanTable>(plan_transfers(graph, fetches, fusion_bytes_));
  }
  return table;
}

void GraphPlans::compare(const Graph& graph, std::span<const std::uint64_t> digests) const {
  const auto all = gather_all(*comm_, fold(digests));
  if (std::ranges::all_of(all, [&](auto one) { return one == all[0]; })) return;
  const auto by_rank = comm_->gather(std::as_bytes(digests), 0);
  const std::string difference =
      by_rank.empty() ? std::string() : describe_difference(graph, by_rank);
  throw Error(ErrorKind::usage,
              "use_graph: ranks have different graphs: " + broadcast_text(*comm_, difference, 0),
              "give the same graph and fetches on all ranks");
}

}  // namespace forebay
