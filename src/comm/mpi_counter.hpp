// The SharedCounter of MPI: one-sided where that works, and works while rank 0 is busy elsewhere;
// else rank 0 answers messages.
//
// Which of both is tried out at creation, as libraries and networks differ: some cannot make the
// window at all, others move nothing while the target is outside MPI. Rank 0 stays outside MPI for
// a moment and looks whether the additions of all others arrive in its memory nevertheless.
#pragma once

#include <memory>

#include "comm/mpi_communicator.hpp"

namespace forebay {

/// Collective over `comm`, which the counter keeps for itself.
std::unique_ptr<SharedCounter> share_mpi_counter(std::shared_ptr<MpiCommunicator> comm);

}  // namespace forebay
