// The seam between this library, which links no MPI, and what calls MPI.
//
// A backend is a shared object for one kind of MPI (all of comm/mpi/, compiled with its mpi.h). It
// has one function, forebay_mpi_backend(), that gives a table:
//
//   layout, version   what the backend was built from; anything but ours is refused, since whole
//                     C++ classes cross this seam
//   mpi               the object that this library works with
//
// A process has one MPI, so it has one backend, loaded with the first use and never unloaded: MPI
// itself keeps pointers into it until MPI_Finalize.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "forebay/communicator.hpp"
#include "forebay/mpi_session.hpp"

namespace forebay {

/// Thread-safe as far as MPI is. Throws communication where a call of MPI fails.
class MpiBackend {
 public:
  virtual ~MpiBackend() = default;

  virtual MpiFlavour flavour() const = 0;
  /// The first words of MPI_Get_library_version().
  virtual std::string library() const = 0;
  /// See mpi_thread_level().
  virtual std::string thread_level() const = 0;

  /// MPI_Init_thread, unless MPI is initialised; tells whether it did so. Collective.
  virtual bool begin() = 0;
  /// MPI_Finalize, unless gave_up(). Collective.
  virtual void end() = 0;
  /// MPI_Abort on MPI_COMM_WORLD.
  virtual void abort(int code) = 0;
  /// Whether this process has ended a wait for an MPI operation early (timeout or interrupt). Then
  /// communicators are leaked and MPI must not be finalized: end the process or abort the job.
  virtual bool gave_up() const = 0;

  virtual std::shared_ptr<Communicator> world() = 0;
  /// A duplicate of the MPI_Comm that lies at `comm`. Throws usage where MPI is not initialised.
  /// Collective over it.
  virtual std::shared_ptr<Communicator> duplicate(const void* comm) = 0;
  /// sizeof(MPI_Comm).
  virtual std::size_t handle_bytes() const = 0;
};

struct MpiBackendTable {
  std::uint32_t layout;  ///< kMpiBackendLayout
  const char* version;   ///< of Forebay, which stands with `layout` for all classes that cross
  MpiBackend* mpi;       ///< lives as long as the process
};

/// Changes with MpiBackend, Communicator and whatever else a backend shares with this library.
constexpr std::uint32_t kMpiBackendLayout = 1;

/// Name of a backend in files and in FOREBAY_MPI_BACKEND: openmpi, mpich or abi.
const char* short_name(MpiFlavour flavour);

/// The backend of this process, loaded by the first call. Throws unsupported or usage; a later call
/// then tries again.
MpiBackend& mpi_backend();
/// Null where none was loaded.
MpiBackend* loaded_mpi_backend();

/// Why backends that would have been taken first could not be loaded; empty where none was.
std::string passed_over_mpi();

}  // namespace forebay
