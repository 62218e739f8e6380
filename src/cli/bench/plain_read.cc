#include "cli/bench/plain_read.hpp"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <exception>
#include <optional>
#include <thread>

#include "comm/values.hpp"
#include "core/clock.hpp"
#include "forebay/error.hpp"
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

namespace {

using Counter = std::atomic<std::uint64_t>;
static_assert(Counter::is_always_lock_free);  // it lies in memory that processes share

/// Which blocks a node reads.
struct Blocks {
  std::uint64_t first;
  std::uint64_t step;
  std::uint64_t bytes;  ///< of the file
};

std::uint64_t read_blocks(const File& file, const Blocks& blocks, Counter& next,
                          std::span<std::byte> buffer) {
  std::uint64_t done = 0;
  while (true) {
    const std::uint64_t offset =
        (blocks.first + next.fetch_add(1) * blocks.step) * PlainRead::kBlock;
    if (offset >= blocks.bytes) return done;
    const std::uint64_t length = std::min(PlainRead::kBlock, blocks.bytes - offset);
    file.read(offset, buffer.first(length));
    done += length;
  }
}

/// Runs body(i) for i below `count` on threads; the first error of any of them is thrown.
template <typename Body>
void on_threads(int count, const Body& body) {
  std::vector<std::optional<Error>> errors(static_cast<std::size_t>(count));
  {
    std::vector<std::jthread> threads;
    for (std::size_t i = 0; i < errors.size(); ++i) {
      threads.emplace_back([&error = errors[i], &body, i] {
        try {
          body(i);
        } catch (const Error& caught) {
          error = caught;
        } catch (const std::exception& caught) {
          error = Error(ErrorKind::io, caught.what());
        }
      });
    }
  }
  for (const auto& error : errors) {
    if (error) throw Error(*error);
  }
}

}  // namespace

PlainRead::PlainRead(Communicator& comm, const Layout& layout, std::string file,
                     std::uint64_t bytes)
    : comm_(&comm),
      file_(std::move(file)),
      bytes_(bytes),
      node_(layout.node_of_rank[static_cast<std::size_t>(comm.rank())]),
      nodes_(layout.nodes),
      local_rank_(layout.node->rank()),
      local_size_(layout.node->size()),
      next_(layout.node->share(sizeof(Counter), SharedMemoryKind::posix)) {
  collectively(comm, [&] { next_->reserve(0, sizeof(Counter)); });
}

PlainRead::~PlainRead() = default;

PlainRun PlainRead::run(int readers) {
  auto& next = *reinterpret_cast<Counter*>(next_->bytes().data());
  const auto nodes = static_cast<std::uint64_t>(std::min(readers, nodes_));
  const Blocks blocks{static_cast<std::uint64_t>(node_), nodes, bytes_};
  if (local_rank_ == 0) next = 0;
  struct Part {
    std::uint64_t bytes = 0;
    double seconds = 0;
  } part;
  collectively(*comm_, [&] {
    const auto file = open_file(file_, Engine::pread);
    expect_reads(*file, Reads::forward);
    // Filled, so that their pages are taken before the clock runs.
    std::vector<std::vector<std::byte>> buffers(static_cast<std::size_t>(readers_here(readers)),
                                                std::vector<std::byte>(kBlock));
    Counter bytes = 0;
    comm_->barrier();
    const Stopwatch watch(part.seconds);
    on_threads(readers_here(readers), [&](std::size_t reader) {
      bytes += read_blocks(*file, blocks, next, buffers[reader]);
    });
    part.bytes = bytes;
  });
  PlainRun run{.readers = readers};
  for (const Part& of_rank : gather_all(*comm_, part)) {
    run.bytes += of_rank.bytes;
    run.seconds = std::max(run.seconds, of_rank.seconds);
  }
  return run;
}

int PlainRead::readers_here(int readers) const {
  int here = 0;
  for (int reader = 0; reader < readers; ++reader) {
    if (reader % nodes_ == node_ && reader / nodes_ % local_size_ == local_rank_) ++here;
  }
  return here;
}

}  // namespace forebay::bench
