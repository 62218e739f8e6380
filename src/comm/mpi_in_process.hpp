// Which MPI libraries a process has loaded: the program's own, mpi4py's, a backend's.
#pragma once

#include <string>
#include <vector>

#include "forebay/mpi_session.hpp"

namespace forebay {

struct LoadedMpi {
  MpiFlavour flavour;
  std::string file;
  const void* base;  ///< where it is mapped, which tells two copies apart
};

/// In the order in which they were loaded; each once.
std::vector<LoadedMpi> mpi_in_process();

/// "Open MPI (/usr/lib/libmpi.so.40) and MPICH (/usr/lib/libmpich.so.12)".
std::string describe(const std::vector<LoadedMpi>& libraries);

}  // namespace forebay
