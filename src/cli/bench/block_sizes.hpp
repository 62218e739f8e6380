// mmap against pread over the block size: one reader, sequential, the rest of the job idle
// (Pumma et al., TOPC 2019, sections 3.3.3 and 3.3.4, figure 8).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "forebay/communicator.hpp"
#include "forebay/storage.hpp"
#include "measure/machine.hpp"

namespace forebay::bench {

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

}  // namespace forebay::bench
