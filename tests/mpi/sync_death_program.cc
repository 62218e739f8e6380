// Rank 1 leaves a running synchronization: by an exception, by exit() or by a signal. The others
// have to end too, not well, and with the message of the exception where there was one.
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <span>
#include <string>
#include <vector>

#include "forebay/error.hpp"
#include "forebay/mpi_session.hpp"
#include "forebay/sync.hpp"

namespace {

void leave(forebay::SyncEngine& engine, const std::string& how) {
  if (how == "exit") std::_Exit(5);
  if (how == "kill") std::raise(SIGKILL);
  const forebay::Error error(forebay::ErrorKind::io, "the training data is gone", "");
  engine.fail(error);
  throw forebay::Error(error);
}

void sum_for_ever(forebay::SyncEngine& engine, bool leaves, const std::string& how) {
  std::vector<float> values(1000, 1);
  const auto bytes = std::as_writable_bytes(std::span(values));
  for (int step = 0;; ++step) {
    if (leaves && step == 20) leave(engine, how);
    engine.allreduce({.name = "x", .shape = {values.size()}}, bytes, bytes).wait();
    engine.end_step();
  }
}

}  // namespace

int main(int argc, char** argv) {
  const std::string how = argc > 1 ? argv[1] : "throw";
  const forebay::MpiSession session;
  const int rank = session.world()->rank();
  try {
    forebay::SyncEngine engine(session.world(), {.strategy = forebay::find_sync_way("negotiate")});
    sum_for_ever(engine, rank == 1, how);
  } catch (const forebay::Error& error) {
    std::fprintf(stderr, "rank %d: %s\n", rank, error.what());
    // MPICH's launcher kills who is left once one has gone, perhaps before it has said anything.
    if (how == "throw") session.world()->barrier();
    return 3;
  }
  return 0;
}
