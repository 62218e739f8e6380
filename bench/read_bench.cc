// One measured epoch (or whatever the options say) of a Loader, under mpirun or alone.
//
//   mpirun -n 4 read_bench DATASET batch=640,strategy=lmm,iterations=625
//
// Every byte of every delivered sample is added up, as 64-bit words: work that a consumer cannot
// avoid and a compiler cannot drop. The sum does not depend on who got which sample, so runs over
// the same samples must agree on it, whatever the strategy and the number of ranks.
//
// Rank 0 prints one JSON line: wall seconds from a common start (before open) to a common end, the
// sum, and the ranks' statistics, combined.
#include <fmt/core.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <memory>
#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <vector>

#include "forebay/error.hpp"
#include "forebay/loader.hpp"
#include "forebay/mpi.hpp"

namespace forebay {
namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point begin) {
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

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

/// What one rank has to tell; crosses ranks as plain bytes.
struct RankFigures {
  std::uint64_t sum = 0;
  double asleep_share = 0;
  LoaderStatistics statistics;
};

RankFigures consume(Loader& loader) {
  RankFigures figures;
  while (const auto batch = loader.next()) {
    for (const Sample& sample : batch->samples()) figures.sum += sum_of_words(sample.value);
  }
  figures.statistics = loader.statistics();
  figures.asleep_share = figures.statistics.asleep_share();
  return figures;
}

std::vector<RankFigures> gather(Communicator& comm, const RankFigures& mine) {
  std::vector<RankFigures> all;
  for (const auto& bytes : comm.gather(std::as_bytes(std::span(&mine, 1)), 0)) {
    std::memcpy(&all.emplace_back(), bytes.data(), sizeof(RankFigures));
  }
  return all;
}

void report(const std::vector<RankFigures>& ranks, double seconds, const std::string& explain) {
  std::uint64_t sum = 0;
  double asleep = 0;
  std::vector<LoaderStatistics> statistics;
  for (const RankFigures& figures : ranks) {
    sum += figures.sum;
    asleep += figures.asleep_share / static_cast<double>(ranks.size());
    statistics.push_back(figures.statistics);
  }
  fmt::print(R"({{"ranks":{},"seconds":{:.6f},"sum":"{:016x}","asleep":{:.4f},"explain":{},)"
             R"("statistics":{}}})"
             "\n",
             ranks.size(), seconds, sum, asleep, nlohmann::json(explain).dump(),
             to_json(combine(statistics)));
}

void run(const std::string& dataset, const std::string& options) {
  const MpiSession mpi;
  const auto comm = mpi.world();
  comm->barrier();
  const auto begin = Clock::now();
  auto loader = Loader::open(comm, dataset, LoaderOptions::parse(options));
  const RankFigures mine = consume(loader);
  comm->barrier();
  const double seconds = seconds_since(begin);
  const auto all = gather(*comm, mine);
  if (comm->rank() == 0) report(all, seconds, loader.explain());
}

}  // namespace
}  // namespace forebay

int main(int argc, char** argv) {
  if (argc != 3) {
    std::fputs("usage: read_bench DATASET OPTIONS, such as batch=640,iterations=625\n", stderr);
    return 2;
  }
  try {
    forebay::run(argv[1], argv[2]);
  } catch (const std::exception& error) {
    fmt::print(stderr, "read_bench: {}\n", error.what());
    return 1;
  }
}
