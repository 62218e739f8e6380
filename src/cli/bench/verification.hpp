// Whether all variants deliver the same data, found out aside of what is timed.
//
// The digest covers (iteration, rank, position, sample id, key, value) of everything delivered, so
// it depends on the order, which C is a part of. Each variant is therefore compared with the
// baseline, liblmdb itself, run with the C that the variant chose.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <string>

#include "forebay/communicator.hpp"
#include "forebay/statistics.hpp"
#include "measure/comparison.hpp"

namespace forebay::bench {

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
