#include "cli/bench/strategy_run.hpp"

#include <algorithm>
#include <cstring>

#include "comm/values.hpp"
#include "core/clock.hpp"
#include "measure/machine.hpp"

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

}  // namespace forebay::bench
