#include "cli/bench/block_sizes.hpp"

#include <algorithm>
#include <cstring>
#include <memory>
#include <random>

#include "core/clock.hpp"
#include "measure/comparison.hpp"
#include "storage/page_cache.hpp"

namespace forebay::bench {
namespace {

constexpr std::uint64_t kSmallest = std::uint64_t{4} << 10;
constexpr std::uint64_t kLargest = std::uint64_t{1} << 30;

void read_block(const File& file, std::uint64_t offset, std::span<std::byte> into) {
  const std::span<const std::byte> mapped = file.map();
  if (mapped.empty()) return file.read(offset, into);
  std::memcpy(into.data(), mapped.data() + offset, into.size());
}

void measure(const std::string& path, BlockRun& run) {
  const auto buffer = std::make_unique<std::byte[]>(run.block);
  // Its pages are taken now, not while the clock runs.
  std::memset(buffer.get(), 0, run.block);
  const auto file = open_file(path, run.engine);
  expect_reads(*file, Reads::forward);
  const Stopwatch watch(run.seconds);
  for (std::uint64_t offset = 0; offset < run.bytes; offset += run.block) {
    read_block(*file, offset, {buffer.get(), std::min(run.block, run.bytes - offset)});
  }
  file->check();
}

}  // namespace

std::vector<BlockRun> run_block_sizes(Communicator& comm, PageCache& cache, const std::string& file,
                                      std::uint64_t bytes, std::uint64_t seed) {
  std::vector<BlockRun> runs;
  for (std::uint64_t block = kSmallest; block <= std::min(kLargest, bytes); block *= 4) {
    for (const Engine engine : {Engine::mmap, Engine::pread}) {
      runs.push_back({.engine = engine, .block = block, .bytes = bytes});
    }
  }
  runs = in_turn(std::move(runs), seed);
  for (BlockRun& run : runs) {
    cache.prepare();
    collectively(comm, [&] {
      if (comm.rank() == 0) measure(file, run);
    });
  }
  std::ranges::sort(runs, {}, &BlockRun::block);
  return runs;
}

}  // namespace forebay::bench
