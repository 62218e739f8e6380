// One measured run of one variant: iterative reading without computing, the microbenchmark of the
// papers (Pumma et al., TOPC 2019, section 5.1; dissertation of 2020, section 3.4.1).
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "forebay/communicator.hpp"
#include "forebay/loader.hpp"
#include "measure/comparison.hpp"

namespace forebay::bench {

enum class Compute : std::uint8_t {
  none,  ///< batches are released as they come: the papers' microbenchmark
  sum,   ///< every byte is added up: the least that a consumer does
};

struct StrategyRun {
  double seconds = 0;  ///< from before open to the last batch, of the slowest rank
  std::string explain;
  std::uint64_t coalesce = 1;
  std::vector<LoaderStatistics> ranks;
};

/// Collective; the same result on all ranks. Throws as Loader.
StrategyRun run_strategy(const std::shared_ptr<Communicator>& comm, const std::string& dataset,
                         const Variant& variant, Compute compute);

}  // namespace forebay::bench
