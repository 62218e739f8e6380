#include <array>
#include <cstdlib>

#include "comm/mpi_communicator.hpp"
#include "comm/mpi_error.hpp"
#include "forebay/mpi.hpp"

namespace forebay {

MpiSession::MpiSession() {
  int initialized = 0;
  check_mpi(MPI_Initialized(&initialized), "MPI_Initialized");
  if (initialized == 0) {
    int granted = MPI_THREAD_SINGLE;
    check_mpi(MPI_Init_thread(nullptr, nullptr, MPI_THREAD_MULTIPLE, &granted), "MPI_Init_thread");
    finalize_ = true;
  }
  world_ = mpi_communicator(MPI_COMM_WORLD);
}

MpiSession::~MpiSession() {
  world_.reset();
  if (finalize_ && !mpi_gave_up()) MPI_Finalize();
}

std::string mpi_thread_level() {
  int initialized = 0;
  if (MPI_Initialized(&initialized) != MPI_SUCCESS || initialized == 0) return "not initialised";
  int level = MPI_THREAD_SINGLE;
  check_mpi(MPI_Query_thread(&level), "MPI_Query_thread");
  switch (level) {
    case MPI_THREAD_MULTIPLE:
      return "MPI_THREAD_MULTIPLE";
    case MPI_THREAD_SERIALIZED:
      return "MPI_THREAD_SERIALIZED";
    case MPI_THREAD_FUNNELED:
      return "MPI_THREAD_FUNNELED";
    default:
      return "MPI_THREAD_SINGLE";
  }
}

bool launched_by_mpi() {
  // What Open MPI, MPICH's Hydra, PMI-2, PMIx and Slurm set for the processes that they start.
  constexpr std::array kVariables = {
      "OMPI_COMM_WORLD_SIZE", "PMI_RANK", "PMI_FD", "PMI_PORT", "PMIX_RANK", "MPI_LOCALNRANKS"};
  for (const char* variable : kVariables) {
    if (std::getenv(variable) != nullptr) return true;
  }
  return false;
}

}  // namespace forebay
