// A rank that does not come: the others' wait must end by the timeout, and so must the program,
// without a crash in MPI. Ranks that saw the timeout say so, and exit with 3.
#include <cstdio>
#include <thread>

#include "forebay/error.hpp"
#include "forebay/mpi_session.hpp"

int main() {
  const forebay::MpiSession session;
  const auto world = session.world();
  const auto comm = world->split(0, world->rank());
  if (world->rank() == world->size() - 1) {
    std::this_thread::sleep_for(std::chrono::seconds(2));
    return 3;
  }
  comm->set_timeout(std::chrono::milliseconds(200));
  try {
    comm->barrier();
  } catch (const forebay::Error& error) {
    const bool right = error.kind() == forebay::ErrorKind::communication;
    std::printf("rank %d %s: %s\n", world->rank(), right ? "timed out" : "failed", error.what());
    std::fflush(stdout);
    return right ? 3 : 1;
  }
  return 1;
}
