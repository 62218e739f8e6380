// Rank 0 makes a plan of what all ranks have shown (paper 002 6.3.4, for frameworks that have no
// graph to show).
//
// The first step is taken as it is. Once a plan was left, a step counts only if it is like the one
// before, or has the tensors of the last plan, which is then used again: what came once (a sum at
// the end of an epoch) does not become part of a plan that the next step would leave again, and
// graphs that change from step to step stay with the negotiation.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "forebay/communicator.hpp"
#include "forebay/graph.hpp"
#include "sync/intake.hpp"
#include "sync/plan_run.hpp"
#include "sync/step_record.hpp"

namespace forebay {

/// A plan, and from where on it is to be followed.
struct PlanProposal {
  TransferPlan plan;
  PlanStart start;
};

auto sent(Is<PlanProposal> auto& one) {
  return std::tie(one.start.step, one.start.ordinals, one.plan);
}

class PlanMaker {
 public:
  PlanMaker(int ranks, std::optional<std::uint64_t> fusion_bytes)
      : ranks_(static_cast<std::size_t>(ranks)), fusion_bytes_(fusion_bytes) {}

  /// The records of a rank come in the order of its steps. `last`: the plan of last; may be null.
  std::optional<PlanProposal> take(int rank, StepRecord record, const PlanTable* last);
  /// Records start anew.
  void clear();

 private:
  std::optional<PlanProposal> look_at(std::span<const StepRecord> by_rank, const PlanTable* last);

  std::size_t ranks_;
  std::optional<std::uint64_t> fusion_bytes_;
  std::map<int, std::uint64_t> steps_of_;                       ///< by rank
  std::map<std::uint64_t, std::map<int, StepRecord>> records_;  ///< by step, by rank
  std::uint64_t looked_at_ = 0;                                 ///< steps
  std::optional<std::uint64_t> digest_before_;                  ///< of the step before
};

// Plans of the graphs that a program gives: one for each graph and what is fetched from it, made
// once, and of graphs that are the same on all ranks.

/// For one thread at a time, on each rank.
class GraphPlans {
 public:
  /// Collective.
  GraphPlans(Communicator& comm, std::optional<std::uint64_t> fusion_bytes);

  /// Collective. Throws usage on all ranks when their graphs or fetches differ, and what
  /// plan_transfers() throws.
  std::shared_ptr<const PlanTable> of(const Graph& graph, std::span<const std::string> fetches);

 private:
  void compare(const Graph& graph, std::span<const std::uint64_t> digests) const;

  std::shared_ptr<Communicator> comm_;
  std::optional<std::uint64_t> fusion_bytes_;
  std::map<std::uint64_t, std::shared_ptr<const PlanTable>> tables_;  ///< by digest
};

}  // namespace forebay
