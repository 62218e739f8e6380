// The yardstick: how fast large plain preads get a file into memory.
//
//   readers   spread over the nodes in turn, and in a node over its ranks; a rank runs its own as
//             threads
//   blocks    of 8 MiB in file order: node n of the N that have readers takes blocks n, n + N, ...;
//             in a node the reader that is free takes the next
//
// Nothing is looked at: this is what the file system and one memory copy allow, and no reader of
// records in that file can deliver more bytes than this moves.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "forebay/communicator.hpp"
#include "forebay/storage.hpp"
#include "measure/machine.hpp"

namespace forebay::bench {

// mmap against pread over the block size: one reader, sequential, the rest of the job idle
// (Pumma et al., TOPC 2019, sections 3.3.3 and 3.3.4, figure 8).

struct BlockRun {
  Engine engine = Engine::pread;
  std::uint64_t block = 0;
  std::uint64_t bytes = 0;
  double seconds = 0;
};

/// Blocks of 4 KiB to 1 GiB in steps of 4, as far as the file is that large, each engine over the
/// first `bytes` of `file`, in an order drawn from `seed`. Collective; the result is rank 0's.
std::vector<BlockRun> run_block_sizes(Communicator& comm, PageCache& cache, const std::string& file,
                                      std::uint64_t bytes, std::uint64_t seed);

struct PlainRun {
  int readers = 0;
  std::uint64_t bytes = 0;
  double seconds = 0;
};

class PlainRead {
 public:
  static constexpr std::uint64_t kBlock = std::uint64_t{8} << 20;

  /// Collective. Reads at most the first `bytes` of `file`.
  PlainRead(Communicator& comm, const Layout& layout, std::string file, std::uint64_t bytes);
  ~PlainRead();

  /// Collective; the same result on all ranks.
  PlainRun run(int readers);

 private:
  int readers_here(int readers) const;

  Communicator* comm_;
  std::string file_;
  std::uint64_t bytes_;
  int node_ = 0;
  int nodes_ = 1;
  int local_rank_ = 0;
  int local_size_ = 1;
  std::unique_ptr<SharedMemory> next_;  ///< number of the node's next block
};

}  // namespace forebay::bench
