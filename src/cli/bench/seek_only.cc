#include "cli/bench/seek_only.hpp"

#include "comm/values.hpp"
#include "core/clock.hpp"
#include "core/process_usage.hpp"
#include "forebay/order.hpp"
#include "measure/machine.hpp"

namespace forebay::bench {
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

}  // namespace forebay::bench
