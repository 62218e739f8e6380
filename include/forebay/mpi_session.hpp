// MPI for programs that need no MPI to be built: it is found when the program runs.
//
// The library itself links no MPI. Beside it lie backends, one for each kind of MPI whose handles
// differ, and the first use of what stands here loads one of them, once per process:
//
//   1  of the MPI library that is in the process already (the program's own, mpi4py's);
//   2  named by FOREBAY_MPI_BACKEND: openmpi, mpich, abi, or the absolute path of a backend;
//   3  of the launcher that the environment tells of (mpirun of Open MPI or MPICH, srun);
//   4  the first whose MPI library is installed.
//
// Where that cannot work, an Error says what was found, what is missing, and what to do.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "forebay/communicator.hpp"

namespace forebay {

class MpiBackend;

/// The kinds of MPI: each has handles and constants of its own. MPICH stands for all libraries of
/// its ABI (Intel's, MVAPICH); `abi` for those of the standard ABI of MPI 5 (libmpi_abi).
enum class MpiFlavour : std::uint8_t { openmpi, mpich, abi };

/// "Open MPI", "MPICH" or "the MPI 5 ABI".
std::string_view to_string(MpiFlavour flavour);

/// MPI_Init_thread and MPI_Finalize for programs that do not do it themselves. Asks for
/// MPI_THREAD_MULTIPLE. A host that has initialised MPI before stays in charge of finalizing.
/// After a wait was ended early (timeout, interrupt) MPI is not finalized, since that could hang:
/// the launcher sees a process that ends without it, and ends the job.
/// Throws unsupported where no MPI can be loaded, and usage where the launcher has started several
/// processes that this MPI does not connect (a launcher of another MPI): each would be a rank 0 of
/// 1.
class MpiSession {
 public:
  MpiSession();
  ~MpiSession();
  MpiSession(const MpiSession&) = delete;
  MpiSession& operator=(const MpiSession&) = delete;

  std::shared_ptr<Communicator> world() const { return world_; }
  /// Whether it finalizes MPI, which nobody had initialised before.
  bool finalizes() const { return finalize_; }
  /// MPI_Abort: ends all ranks of MPI's world with this exit code. Local.
  void abort(int code) const;

 private:
  MpiBackend* mpi_;  // of the process, which never gives it back
  bool finalize_ = false;
  std::shared_ptr<Communicator> world_;
};

/// What mpi_communicator() of forebay/mpi.hpp calls: `comm` is where a handle of type MPI_Comm
/// lies, `bytes` its size, `flavour` whose mpi.h the caller was compiled with. MPI is initialised.
/// The handle is duplicated (collective over it). Throws usage where Forebay uses another MPI.
std::shared_ptr<Communicator> adopt_mpi_communicator(const void* comm, std::size_t bytes,
                                                     MpiFlavour flavour);
/// The same for handles of whatever MPI library the process has, as mpi4py's are.
std::shared_ptr<Communicator> adopt_mpi_communicator(const void* comm);

/// Name and version of the MPI library, as "Open MPI v4.1.4". Loads it if need be; throws
/// unsupported where there is none.
std::string mpi_library();

/// "MPI_THREAD_MULTIPLE" or what was granted instead; "not initialised", also where Forebay has not
/// used MPI yet.
std::string mpi_thread_level();

/// Whether a launcher (mpirun, srun, a PMI) started this process, judged by the environment.
bool launched_by_mpi();

}  // namespace forebay
