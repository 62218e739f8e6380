// Sums over all ranks of a communicator, without a look at where they run.
#pragma once

#include <memory>

#include "comm/nonblocking.hpp"
#include "sync/summation.hpp"

namespace forebay {

/// MPI_Iallreduce. Numbers of 16 bits are rounded after every addition.
std::unique_ptr<Summation> mpi_sum(std::unique_ptr<NonblockingCollectives> comm);

/// Blocks that each rank adds up in the order of ranks.
///
///   rank 0:  a0 a1 a2                a0 b0 c0   sum 0 = a0 + b0 + c0
///   rank 1:  b0 b1 b2  all_to_all->  a1 b1 c1   sum 1                  all_gather-> 0 1 2
///   rank 2:  c0 c1 c2                a2 b2 c2   sum 2
///
/// Small buffers go to all ranks as they are (all_gather), and each adds up the whole.
std::unique_ptr<Summation> direct_sum(std::unique_ptr<NonblockingCollectives> comm);

}  // namespace forebay
