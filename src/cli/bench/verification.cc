#include "cli/bench/verification.hpp"

#include <xxhash.h>

#include "comm/values.hpp"
#include "forebay/loader.hpp"
#include "measure/machine.hpp"

namespace forebay::bench {
namespace {

/// Sums of this over samples do not depend on which rank hashed which sample first.
std::uint64_t digest_of_sample(const Sample& sample, std::uint64_t iteration, int rank) {
  const std::uint64_t place[] = {iteration, static_cast<std::uint64_t>(rank), sample.position,
                                 sample.id, sample.repeat ? 1U : 0U};
  const std::uint64_t seed = XXH3_64bits(place, sizeof place);
  const std::uint64_t key = XXH3_64bits_withSeed(sample.key.data(), sample.key.size(), seed);
  return XXH3_64bits_withSeed(sample.value.data(), sample.value.size(), key);
}

}  // namespace

void SpeculationCourse::note(const LoaderStatistics& statistics) {
  if (iterations == kIterations) return;
  missed[iterations] = statistics.missed_pages;
  redundant[iterations] = statistics.redundant_pages;
  ++iterations;
}

void SpeculationCourse::add(const SpeculationCourse& rank) {
  iterations = rank.iterations;  // the same on all ranks
  for (std::size_t i = 0; i < iterations; ++i) {
    missed[i] += rank.missed[i];
    redundant[i] += rank.redundant[i];
  }
}

Verified Verification::check(const Variant& variant) {
  const Digest mine = digest_of(variant.options);
  auto known = baseline_.find(mine.coalesce);
  if (known == baseline_.end()) {
    LoaderOptions options;
    options.strategy = Strategy::lmdb;
    options.batch = variant.options.batch;
    options.iterations = variant.options.iterations;
    options.epochs = variant.options.epochs;
    options.end = variant.options.end;
    options.codec = "bytes";
    options.stage_bytes = variant.options.stage_bytes;
    options.timeout = variant.options.timeout;
    options.coalesce = mine.coalesce;
    known = baseline_.emplace(mine.coalesce, digest_of(options)).first;
  }
  return {.variant = variant.name,
          .coalesce = mine.coalesce,
          .samples = mine.samples,
          .digest = mine.value,
          .expected = known->second.value,
          .speculation = mine.speculation};
}

Verification::Digest Verification::digest_of(const LoaderOptions& options) const {
  Loader loader = Loader::open(comm_, dataset_, options);
  Digest mine;
  collectively(*comm_, [&] {
    while (const auto batch = loader.next()) {
      for (const Sample& sample : batch->samples()) {
        mine.value += digest_of_sample(sample, batch->iteration(), comm_->rank());
        ++mine.samples;
      }
      if (mine.speculation.iterations < SpeculationCourse::kIterations) {
        mine.speculation.note(loader.statistics());
      }
    }
  });
  Digest all{.coalesce = loader.order().coalesce()};
  for (const Digest& rank : gather_all(*comm_, mine)) {
    all.value += rank.value;
    all.samples += rank.samples;
    all.speculation.add(rank.speculation);
  }
  return all;
}

}  // namespace forebay::bench
