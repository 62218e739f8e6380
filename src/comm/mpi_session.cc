#include "forebay/mpi_session.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "comm/mpi_backend.hpp"
#include "comm/mpi_launcher.hpp"
#include "forebay/error.hpp"

namespace forebay {
namespace {

/// "MPICH Version:\t4.0.2" as people say it.
std::string name_of(const MpiBackend& mpi) {
  const std::string name = mpi.library();
  constexpr std::string_view kFiller = " Version:";
  const std::size_t at = name.find(kFiller);
  if (at == std::string::npos) return name;
  const std::size_t number = name.find_first_not_of(" \t", at + kFiller.size());
  return fmt::format("{} {}", name.substr(0, at), name.substr(std::min(number, name.size())));
}

/// A launcher that this MPI does not understand leaves each process a world of its own, in which it
/// would take the whole data set for itself.
void require_company(const MpiLauncher& launcher, int size, const MpiBackend& mpi) {
  if (size > 1 || launcher.started <= 1) return;
  std::string why;
  if (const std::string passed = passed_over_mpi(); !passed.empty()) {
    why = fmt::format(" (taken because: {})", passed);
  }
  throw Error(ErrorKind::usage,
              fmt::format("{} processes were started by {}, but each is alone in {}{}",
                          launcher.started, launcher.name, name_of(mpi), why),
              "start them by mpirun of that same MPI, or by srun --mpi=TYPE with a type that it "
              "understands (srun --mpi=list; often pmix for Open MPI, pmi2 for MPICH)");
}

}  // namespace

MpiSession::MpiSession() : mpi_(&mpi_backend()) {
  const auto launcher = find_mpi_launcher();  // asked first: MPI_Init may set the same variables
  finalize_ = mpi_->begin();
  try {
    world_ = mpi_->world();
    if (launcher) require_company(*launcher, world_->size(), *mpi_);
  } catch (...) {
    world_.reset();
    if (finalize_) mpi_->end();
    throw;
  }
}

MpiSession::~MpiSession() {
  world_.reset();
  if (finalize_) mpi_->end();
}

void MpiSession::abort(int code) const { mpi_->abort(code); }

std::shared_ptr<Communicator> adopt_mpi_communicator(const void* comm, std::size_t bytes,
                                                     MpiFlavour flavour) {
  MpiBackend& mpi = mpi_backend();
  if (mpi.flavour() == flavour && mpi.handle_bytes() == bytes) return mpi.duplicate(comm);
  throw Error(ErrorKind::usage,
              fmt::format("the communicator is one of {}, but Forebay uses {}", to_string(flavour),
                          name_of(mpi)),
              "compile and start the program with one MPI, and leave FOREBAY_MPI_BACKEND out");
}

std::shared_ptr<Communicator> adopt_mpi_communicator(const void* comm) {
  return mpi_backend().duplicate(comm);
}

std::string mpi_library() { return name_of(mpi_backend()); }

std::string mpi_thread_level() {
  const MpiBackend* const mpi = loaded_mpi_backend();
  return mpi == nullptr ? "not initialised" : mpi->thread_level();
}

}  // namespace forebay
