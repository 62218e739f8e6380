// One measured run of one variant: iterative reading without computing, the microbenchmark of the
// papers (Pumma et al., TOPC 2019, section 5.1; dissertation of 2020, section 3.4.1).
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "forebay/communicator.hpp"
#include "forebay/loader.hpp"
#include "format/record_source.hpp"
#include "measure/comparison.hpp"
#include "measure/machine.hpp"

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

// How long each rank seeks when nobody reads: rank p goes to the first sample of its share of each
// iteration, over everything that lies before it (dissertation, section 3.4.1, figure 3.7a).
//
// Done with liblmdb, which passes over records one by one, and with our reader over a mapping.

struct SeekRun {
  SourceEngine engine = SourceEngine::liblmdb;
  int rank = 0;
  int repetition = 0;
  double first_seconds = 0;  ///< to the share of iteration 0
  double seconds = 0;        ///< of all iterations, the first included
  std::uint64_t pages_visited = 0;
  std::uint64_t records_skipped = 0;
  std::uint64_t voluntary_switches = 0;
};

struct SeekOptions {
  std::string dataset;
  std::uint64_t batch = 0;
  std::uint64_t iterations = 0;
  int repetitions = 1;
};

/// Collective; the same result on all ranks. Throws as open_records.
std::vector<SeekRun> run_seek_only(Communicator& comm, PageCache& cache,
                                   const SeekOptions& options);

}  // namespace forebay::bench
