// What the environment tells of the launcher that has started this process.
#pragma once

#include <optional>
#include <string>

#include "forebay/mpi_session.hpp"

namespace forebay {

struct MpiLauncher {
  std::string name;                   ///< "mpirun of MPICH", "srun", ...
  std::optional<MpiFlavour> flavour;  ///< the MPI that its processes are most likely connected by
  int started = 0;  ///< processes that it has started, by its own word; 0 where it says nothing
};

/// Nothing where no launcher of MPI programs has left a variable. To be asked before MPI_Init,
/// which may set the same variables.
std::optional<MpiLauncher> find_mpi_launcher();

}  // namespace forebay
