#include <fmt/format.h>

#include <array>
#include <cstdlib>

#include "comm/mpi_communicator.hpp"
#include "forebay/error.hpp"
#include "forebay/mpi.hpp"

namespace forebay {
namespace {

int number_of(const char* variable) {
  const char* text = std::getenv(variable);
  return text == nullptr ? 0 : std::atoi(text);
}

/// How many processes the innermost launcher has started, by its own word; 0 where it says nothing.
int started_together() {
  for (const char* variable : {"OMPI_COMM_WORLD_SIZE", "PMI_SIZE"}) {
    if (const int size = number_of(variable); size > 0) return size;
  }
  return launched_by_mpi() ? number_of("SLURM_STEP_NUM_TASKS") : 0;
}

/// A launcher that this MPI does not understand leaves each process a world of its own, in which it
/// would take the whole data set for itself.
void require_company(int started, int size) {
  if (size > 1 || started <= 1) return;
  throw Error(
      ErrorKind::usage,
      fmt::format("{} processes were started, but each is alone in {}", started, mpi_library()),
      "start them by mpirun of that same MPI, or by srun --mpi=TYPE with a type that it "
      "understands (srun --mpi=list; often pmix for Open MPI, pmi2 for MPICH)");
}

}  // namespace

MpiSession::MpiSession() {
  const int started = started_together();  // asked first: MPI_Init may set the same variables
  int initialized = 0;
  check_mpi(MPI_Initialized(&initialized), "MPI_Initialized");
  if (initialized == 0) {
    int granted = MPI_THREAD_SINGLE;
    check_mpi(MPI_Init_thread(nullptr, nullptr, MPI_THREAD_MULTIPLE, &granted), "MPI_Init_thread");
    finalize_ = true;
  }
  world_ = mpi_communicator(MPI_COMM_WORLD);
  try {
    require_company(started, world_->size());
  } catch (...) {
    world_.reset();
    if (finalize_) MPI_Finalize();
    throw;
  }
}

MpiSession::~MpiSession() {
  world_.reset();
  if (finalize_ && !mpi_gave_up()) MPI_Finalize();
}

std::string mpi_library() {
  char text[MPI_MAX_LIBRARY_VERSION_STRING] = {};
  int length = 0;
  if (MPI_Get_library_version(text, &length) != MPI_SUCCESS) return {};
  const std::string whole(text, static_cast<std::size_t>(length));
  return whole.substr(0, whole.find_first_of(",\n"));
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
