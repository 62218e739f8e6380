// MPI for programs that use MPI themselves: the only public header that includes mpi.h. They bring
// an MPI of their own (find_package(MPI)), of which Forebay then uses the same library.
#pragma once

// The C++ bindings that MPI itself has dropped would only bring warnings.
#ifndef OMPI_SKIP_MPICXX
#define OMPI_SKIP_MPICXX 1
#endif
#ifndef MPICH_SKIP_MPICXX
#define MPICH_SKIP_MPICXX 1
#endif
#include <mpi.h>

#include <memory>

#include "forebay/communicator.hpp"
#include "forebay/mpi_session.hpp"

namespace forebay {

/// Whose mpi.h this is.
#if defined(OMPI_MAJOR_VERSION)
inline constexpr MpiFlavour kMpiFlavour = MpiFlavour::openmpi;
#elif defined(MPI_ABI_VERSION)
inline constexpr MpiFlavour kMpiFlavour = MpiFlavour::abi;
#else
inline constexpr MpiFlavour kMpiFlavour = MpiFlavour::mpich;
#endif

/// Duplicates `comm` (collective) and sets MPI_ERRORS_RETURN on the duplicate; the caller's
/// communicator and its error handler stay as they are. The duplicate is freed with the last
/// reference, or left alone when MPI was finalized before. Throws usage where MPI is not
/// initialised, or Forebay uses another MPI than this program (FOREBAY_MPI_BACKEND).
inline std::shared_ptr<Communicator> mpi_communicator(MPI_Comm comm) {
  return adopt_mpi_communicator(&comm, sizeof(MPI_Comm), kMpiFlavour);
}

}  // namespace forebay
