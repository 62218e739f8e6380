// MPI for Forebay: the only public header that includes mpi.h.
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
#include <string>

#include "forebay/communicator.hpp"

namespace forebay {

/// Duplicates `comm` (collective) and sets MPI_ERRORS_RETURN on the duplicate; the caller's
/// communicator and its error handler stay as they are. The duplicate is freed with the last
/// reference, or left alone when MPI was finalized before.
std::shared_ptr<Communicator> mpi_communicator(MPI_Comm comm);

/// MPI_Init_thread and MPI_Finalize for programs that do not do it themselves. Asks for
/// MPI_THREAD_MULTIPLE. A host that has initialised MPI before stays in charge of finalizing.
/// After a wait was ended early (timeout, interrupt) MPI is not finalized, since that could hang:
/// the launcher sees a process that ends without it, and ends the job.
/// Throws usage where the launcher has started several processes that this MPI does not connect (a
/// launcher of another MPI): each would be a rank 0 of 1.
class MpiSession {
 public:
  MpiSession();
  ~MpiSession();
  MpiSession(const MpiSession&) = delete;
  MpiSession& operator=(const MpiSession&) = delete;

  std::shared_ptr<Communicator> world() const { return world_; }
  /// Whether it finalizes MPI, which nobody had initialised before.
  bool finalizes() const { return finalize_; }

 private:
  bool finalize_ = false;
  std::shared_ptr<Communicator> world_;
};

/// Name and version of the MPI library, as "Open MPI v4.1.4".
std::string mpi_library();

/// "MPI_THREAD_MULTIPLE" or what was granted instead; "not initialised".
std::string mpi_thread_level();

/// Whether a launcher (mpirun, srun, a PMI) started this process, judged by the environment.
bool launched_by_mpi();

}  // namespace forebay
