#include "cli/mpi_main.hpp"

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdlib>
#include <optional>
#include <span>
#include <thread>
#include <vector>

#include "cli/output.hpp"
#include "forebay/error.hpp"
#include "forebay/mpi.hpp"

namespace forebay {
namespace {

int exit_code(const Error& error) { return error.kind() == ErrorKind::usage ? 2 : 1; }

/// One rank speaks for all: the one that failed, or rank 0 where that one may be dead.
int speaker_for(const Error& error) {
  const bool by_first = error.where().rank < 0 || error.kind() == ErrorKind::communication;
  return by_first ? 0 : error.where().rank;
}

/// Ranks on different nodes may have failed at the same moment, each for its own reason: the lowest
/// of them is heard. Throws communication when not all ranks come to tell.
int agree_on_speaker(Communicator& at_exit, int proposed) {
  std::vector<int> all(static_cast<std::size_t>(at_exit.size()));
  at_exit.all_gather(std::as_bytes(std::span(&proposed, 1)),
                     std::as_writable_bytes(std::span(all)));
  return *std::min_element(all.begin(), all.end());
}

/// MPI_Finalize may wait for ever for operations that a failure has cut off.
void limit_finalize(int code) {
  std::thread([code] {
    std::this_thread::sleep_for(std::chrono::seconds(3));
    std::_Exit(code);
  }).detach();
}

void end_failed_job(Communicator& at_exit, const Error& error, int code) {
  const int speaker = speaker_for(error);
  const bool may_speak = at_exit.rank() == speaker;
  at_exit.set_timeout(std::chrono::seconds(5));
  try {
    const bool heard = agree_on_speaker(at_exit, speaker) == speaker;
    if (may_speak && heard) print_error(error.what());
  } catch (const Error&) {
    if (may_speak) print_error(error.what());
    MPI_Abort(MPI_COMM_WORLD, code);
  }
  limit_finalize(code);
}

/// What `run` returns, or the exit code of its error, which is printed.
int or_print(const std::function<int()>& run) {
  try {
    return run();
  } catch (const Error& error) {
    print_error(error.what());
    return exit_code(error);
  } catch (const std::exception& error) {
    print_error(error.what());
    return 1;
  }
}

int run_together(const std::function<int(std::shared_ptr<Communicator>)>& body) {
  MpiSession session;
  const auto world = session.world();
  // Of its own, since a failure may leave others in the middle of an operation on `world`.
  const auto at_exit = world->split(0, world->rank());
  int code = 0;
  try {
    code = body(world);
  } catch (const Error& error) {
    code = exit_code(error);
    end_failed_job(*at_exit, error, code);
  } catch (const std::exception& error) {
    print_error(error.what());
    MPI_Abort(MPI_COMM_WORLD, 1);
  }
  return code;
}

}  // namespace

int run_collective_main(const std::function<int(std::shared_ptr<Communicator>)>& body) {
  if (launched_by_mpi()) return or_print([&body] { return run_together(body); });
  return or_print([&body] { return body(self_communicator()); });
}

int launched_rank() {
  constexpr std::array kVariables = {"OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK"};
  for (const char* variable : kVariables) {
    if (const char* text = std::getenv(variable)) return std::atoi(text);
  }
  return 0;
}

}  // namespace forebay
