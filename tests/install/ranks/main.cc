// A project outside the tree with an MPI of its own: Forebay takes over one of its communicators.
#include <cstdio>

#include "forebay/error.hpp"
#include "forebay/mpi.hpp"

namespace {

bool works() {
  int rank = -1;
  int size = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  const auto comm = forebay::mpi_communicator(MPI_COMM_WORLD);
  float sum = 1;
  comm->all_reduce_sum(std::span(&sum, 1));
  std::printf("%d of %d, %s\n", rank, size, forebay::mpi_library().c_str());
  return comm->rank() == rank && comm->size() == size && static_cast<int>(sum) == size;
}

/// Before MPI_Init there is nothing to take over.
bool is_refused() {
  try {
    forebay::mpi_communicator(MPI_COMM_WORLD);
  } catch (const forebay::Error& error) {
    return error.kind() == forebay::ErrorKind::usage;
  }
  return false;
}

}  // namespace

int main(int argc, char** argv) {
  const bool refused = is_refused();
  MPI_Init(&argc, &argv);
  const bool well = works();
  MPI_Finalize();
  return refused && well ? 0 : 1;
}
