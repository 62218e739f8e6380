#include "cli/bench/load_bench.hpp"

#include <thread>

#include "comm/values.hpp"
#include "core/clock.hpp"
#include "forebay/loader.hpp"
#include "measure/machine.hpp"
#include "program/output.hpp"

namespace forebay::bench {
namespace {

void compute(std::chrono::nanoseconds duration, ComputeBy by) {
  if (duration.count() == 0) return;
  if (by == ComputeBy::sleep) return std::this_thread::sleep_for(duration);
  const std::int64_t end = now_ns() + duration.count();
  while (now_ns() < end) {
  }
}

LoadTimes consume(Loader& loader, const LoadOptions& options) {
  LoadTimes times;
  const double begin = now_seconds();
  bool first = true;
  for (;;) {
    const double asked = now_seconds();
    const auto batch = loader.next();
    const double got = now_seconds();
    (first ? times.first : times.waited) += got - asked;
    first = false;
    if (!batch) break;
    compute(options.compute, options.compute_by);
    times.computing += now_seconds() - got;
  }
  times.total = now_seconds() - begin;
  return times;
}

LoadRun run_variant(const std::shared_ptr<Communicator>& comm, const LoadOptions& options,
                    const Variant& variant, LoadResults& results) {
  LoaderOptions how = variant.options;
  how.one_at_a_time = true;
  Loader loader = Loader::open(comm, options.dataset, how);
  results.entries = loader.entries();
  comm->set_timeout(variant.options.patience_with_ranks());
  comm->barrier();
  LoadTimes times;
  LoaderStatistics statistics;
  collectively(*comm, [&] {
    times = consume(loader, options);
    statistics = loader.statistics();
  });
  return {.variant = variant.name,
          .explain = broadcast_text(*comm, loader.explain(), 0),
          .times = gather_all(*comm, times),
          .ranks = gather_all(*comm, statistics)};
}

}  // namespace

LoadResults run_load_bench(const std::shared_ptr<Communicator>& comm, const LoadOptions& options) {
  LoadResults results{.options = options, .layout = find_layout(*comm)};
  std::vector<Variant> variants{{"as given", options.loader}};
  std::vector<std::string> files;
  collectively(*comm, [&] {
    if (!options.variants.empty()) variants = parse_variants(options.variants, options.loader);
    if (!options.cold) files = files_of(options.dataset);
  });
  for (const Variant& variant : variants) results.variants.push_back(variant.name);
  PageCache cache(*comm, results.layout, files, options.cold);
  std::unique_ptr<Progress> progress;
  if (comm->rank() == 0) {
    progress = std::make_unique<Progress>(
        "measuring", static_cast<std::uint64_t>(options.repetitions) * variants.size());
  }
  for (int repetition = 0; repetition < options.repetitions; ++repetition) {
    int turn = 0;
    for (const Variant& variant : in_turn(variants, options.seed, repetition)) {
      cache.prepare();
      results.runs.push_back(run_variant(comm, options, variant, results));
      results.runs.back().repetition = repetition;
      results.runs.back().turn = turn++;
      if (progress) progress->update(results.runs.size());
    }
  }
  return results;
}

}  // namespace forebay::bench
