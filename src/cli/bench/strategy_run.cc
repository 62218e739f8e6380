#include "cli/bench/strategy_run.hpp"

#include <xxhash.h>

#include <algorithm>
#include <cstring>

#include "comm/values.hpp"
#include "core/clock.hpp"
#include "core/process_usage.hpp"
#include "forebay/samples.hpp"

namespace forebay::bench {
namespace {

std::uint64_t sum_of_words(std::span<const std::byte> bytes) {
  std::uint64_t sum = 0;
  while (bytes.size() >= sizeof(std::uint64_t)) {
    std::uint64_t word;
    std::memcpy(&word, bytes.data(), sizeof word);
    sum += word;
    bytes = bytes.subspan(sizeof word);
  }
  for (const std::byte byte : bytes) sum += std::to_integer<std::uint64_t>(byte);
  return sum;
}

struct RankRun {
  double seconds = 0;
  std::uint64_t sum = 0;  ///< leaves this file's hands, so that no compiler drops the adding
  LoaderStatistics statistics;
};

void consume(Loader& loader, Compute compute, RankRun& run) {
  while (const auto batch = loader.next()) {
    if (compute == Compute::none) continue;
    for (const Sample& sample : batch->samples()) run.sum += sum_of_words(sample.value);
  }
}

}  // namespace

StrategyRun run_strategy(const std::shared_ptr<Communicator>& comm, const std::string& dataset,
                         const Variant& variant, Compute compute) {
  comm->barrier();
  RankRun mine;
  const double begin = now_seconds();
  Loader loader = Loader::open(comm, dataset, variant.options);
  comm->set_timeout(variant.options.patience_with_ranks());
  collectively(*comm, [&] {
    consume(loader, compute, mine);
    mine.seconds = now_seconds() - begin;
    mine.statistics = loader.statistics();
  });
  StrategyRun run{.explain = loader.explain(), .coalesce = loader.order().coalesce()};
  for (const RankRun& rank : gather_all(*comm, mine)) {
    run.seconds = std::max(run.seconds, rank.seconds);
    run.ranks.push_back(rank.statistics);
  }
  return run;
}

namespace {

void seek_all(RecordSource& source, const StridedOrder& order, std::uint64_t iterations,
              SeekRun& run) {
  const ProcessUsage before = thread_usage();
  const double begin = now_seconds();
  for (std::uint64_t iteration = 0; iteration < iterations; ++iteration) {
    source.seek(order.sample(order.run(run.rank, iteration).first));
    if (iteration == 0) run.first_seconds = now_seconds() - begin;
  }
  run.seconds = now_seconds() - begin;
  run.voluntary_switches = (thread_usage() - before).voluntary_switches;
  run.pages_visited = source.counters().pages_visited;
  run.records_skipped = source.counters().records_skipped;
}

}  // namespace

std::vector<SeekRun> run_seek_only(Communicator& comm, PageCache& cache,
                                   const SeekOptions& options) {
  std::vector<SeekRun> all;
  for (int repetition = 0; repetition < options.repetitions; ++repetition) {
    for (const SourceEngine engine : {SourceEngine::liblmdb, SourceEngine::mmap}) {
      cache.prepare();
      SeekRun mine{.engine = engine, .rank = comm.rank(), .repetition = repetition};
      collectively(comm, [&] {
        const auto source = open_records(options.dataset, engine);
        const StridedOrder order(source->entries(), comm.size(), options.batch);
        seek_all(*source, order, options.iterations, mine);
      });
      for (const SeekRun& run : gather_all(comm, mine)) all.push_back(run);
    }
  }
  return all;
}

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
