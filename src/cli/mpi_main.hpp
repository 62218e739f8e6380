// How a command that runs on many ranks starts and ends.
//
// Started by mpirun, srun or another PMI launcher it runs on all ranks of MPI_COMM_WORLD; started
// by hand it runs alone, and MPI is not even initialised.
//
// When a rank fails, all ranks end within seconds and with the same exit code, and one line goes to
// stderr. Ranks that still answer finalize MPI; if one does not, MPI_Abort ends the job.
#pragma once

#include <functional>
#include <memory>

#include "forebay/communicator.hpp"

namespace forebay {

/// Runs `body` and returns the exit code: what `body` returns, 1 or (kind usage) 2 on an Error.
/// Collective over the job, including errors: those of a Loader are.
int run_collective_main(const std::function<int(std::shared_ptr<Communicator>)>& body);

/// This process's rank as the launcher's environment tells it, before MPI starts; 0 without one.
int launched_rank();

}  // namespace forebay
