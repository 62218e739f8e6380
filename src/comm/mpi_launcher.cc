#include "comm/mpi_launcher.hpp"

#include <algorithm>
#include <array>
#include <cstdlib>

namespace forebay {
namespace {

bool has(const char* variable) { return std::getenv(variable) != nullptr; }

int number_of(const char* variable) {
  const char* text = std::getenv(variable);
  return text == nullptr ? 0 : std::atoi(text);
}

/// Slurm's step has a number in every process that srun has started.
bool by_srun() { return has("SLURM_STEP_NUM_TASKS") && has("SLURM_PROCID"); }

}  // namespace

std::optional<MpiLauncher> find_mpi_launcher() {
  // Set by Open MPI's own launchers alone, which pass on what launchers around them have set.
  if (has("OMPI_COMM_WORLD_SIZE")) {
    return MpiLauncher{.name = "mpirun of Open MPI",
                       .flavour = MpiFlavour::openmpi,
                       .started = number_of("OMPI_COMM_WORLD_SIZE")};
  }
  // PMI: MPICH's Hydra, the launchers of its relatives, and srun --mpi=pmi2.
  constexpr std::array kPmi = {"PMI_RANK", "PMI_FD", "PMI_PORT", "MPI_LOCALNRANKS"};
  if (std::ranges::any_of(kPmi, has)) {
    const int size = number_of("PMI_SIZE");
    return MpiLauncher{.name = by_srun() ? "srun" : "mpirun of MPICH",
                       .flavour = MpiFlavour::mpich,
                       .started = size > 0 ? size : number_of("SLURM_STEP_NUM_TASKS")};
  }
  if (has("PMIX_RANK")) {
    return MpiLauncher{.name = by_srun() ? "srun" : "a PMIx launcher",
                       .flavour = MpiFlavour::openmpi,
                       .started = number_of("SLURM_STEP_NUM_TASKS")};
  }
  return std::nullopt;
}

bool launched_by_mpi() { return find_mpi_launcher().has_value(); }

}  // namespace forebay
