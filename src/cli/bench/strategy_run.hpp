// One measured run of one variant: iterative reading without computing, the microbenchmark of the
// papers (Pumma et al., TOPC 2019, section 5.1; dissertation of 2020, section 3.4.1).
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "forebay/communicator.hpp"
#include "forebay/loader.hpp"
#include "forebay/statistics.hpp"
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

// Whether all variants deliver the same data, found out aside of what is timed.
//
// The digest covers (iteration, rank, position, sample id, key, value) of everything delivered, so
// it depends on the order, which C is a part of. Each variant is therefore compared with the
// baseline, liblmdb itself, run with the C that the variant chose.

/// Pages that speculation has missed and has read in vain, over all ranks, by the time that an
/// iteration was delivered; for the first iterations of a run.
struct SpeculationCourse {
  static constexpr std::size_t kIterations = 64;

  std::size_t iterations = 0;
  std::array<std::uint64_t, kIterations> missed{};
  std::array<std::uint64_t, kIterations> redundant{};

  void note(const LoaderStatistics& statistics);
  void add(const SpeculationCourse& rank);
};

struct Verified {
  std::string variant;
  std::uint64_t coalesce = 1;
  std::uint64_t samples = 0;
  std::uint64_t digest = 0;
  std::uint64_t expected = 0;
  SpeculationCourse speculation;
  bool agrees() const { return digest == expected; }
};

class Verification {
 public:
  Verification(std::shared_ptr<Communicator> comm, std::string dataset)
      : comm_(std::move(comm)), dataset_(std::move(dataset)) {}

  /// Reads everything that a run of `variant` reads, and once for each C what the baseline does.
  /// Collective; the same result on all ranks. Throws as Loader.
  Verified check(const Variant& variant);

 private:
  struct Digest {
    std::uint64_t value = 0;
    std::uint64_t samples = 0;
    std::uint64_t coalesce = 1;
    SpeculationCourse speculation;
  };

  Digest digest_of(const LoaderOptions& options) const;

  std::shared_ptr<Communicator> comm_;
  std::string dataset_;
  std::map<std::uint64_t, Digest> baseline_;  ///< by C
};

}  // namespace forebay::bench
