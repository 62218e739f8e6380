// How long each rank seeks when nobody reads: rank p goes to the first sample of its share of each
// iteration, over everything that lies before it (dissertation, section 3.4.1, figure 3.7a).
//
// Done with liblmdb, which passes over records one by one, and with our reader over a mapping.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "forebay/communicator.hpp"
#include "format/record_source.hpp"
#include "measure/machine.hpp"

namespace forebay::bench {

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
