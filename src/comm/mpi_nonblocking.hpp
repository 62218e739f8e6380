// Non-blocking collectives of MPI, asked for their end with MPI_Test.
//
// MPI has no numbers of 16 bits: float16 and bfloat16 move as unsigned numbers and are combined by
// operations of our own, which round every intermediate result.
#pragma once

#include <memory>

#include "comm/mpi_communicator.hpp"
#include "comm/nonblocking.hpp"

namespace forebay {

/// `comm` is used by the result alone.
std::unique_ptr<NonblockingCollectives> mpi_nonblocking(std::shared_ptr<MpiCommunicator> comm);

}  // namespace forebay
