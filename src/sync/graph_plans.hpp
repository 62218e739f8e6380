// Plans of the graphs that a program gives: one for each graph and what is fetched from it, made
// once, and of graphs that are the same on all ranks.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "forebay/communicator.hpp"
#include "forebay/graph.hpp"
#include "sync/plan_table.hpp"

namespace forebay {

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
