#include "ending.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <future>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "comm/values.hpp"
#include "module.hpp"

namespace forebay::python {
namespace {

/// How long ranks wait for each other to end together.
constexpr std::chrono::milliseconds kMeeting{1000};
/// The same for those who have heard of another's failure: that one is to be the first.
constexpr std::chrono::milliseconds kMeetingOfOthers{2500};
/// What an orderly end may take after a failure: MPI_Finalize may wait for ever.
constexpr std::chrono::milliseconds kLongestEnd{1500};

struct Ending {
  pid_t process = 0;
  std::mutex beginning;
  std::unique_ptr<ProcessMpi> mpi;
  std::atomic<ProcessMpi*> begun = nullptr;  ///< that, for those who do not wait for its beginning
  std::vector<OpenThing> things;
  std::atomic<bool> raised = false;   ///< Python's code has been told of a failure
  std::atomic<int> failed_rank = -1;  ///< the rank that the last of them was of
  std::mutex mutex;                   ///< of what follows
  std::vector<std::future<void>> behind;
  pid_t behind_of = 0;  ///< the process whose threads those are
};

/// Never destroyed: it is needed when destructors of static objects run.
Ending& ending() {
  static auto& only = *new Ending;
  return only;
}

/// What ranks tell at the meeting.
struct Leaving {
  int code = 0;
  int by_other = 0;  ///< because of another rank's failure
};

/// The code of the lowest rank that left by itself, else of the lowest that left at all.
int agreed_code(std::span<const Leaving> all) {
  for (const bool also_others : {false, true}) {
    for (const Leaving& one : all) {
      if (one.code != 0 && (also_others || one.by_other == 0)) return one.code;
    }
  }
  return 0;
}

/// Whoever is done waits for the others as MPI_Finalize does; leaving ranks do not.
std::chrono::milliseconds patience(const Leaving& mine) {
  if (mine.code == 0) return std::chrono::hours(24 * 365);
  return mine.by_other != 0 ? kMeetingOfOthers : kMeeting;
}

/// The job's code, once all ranks have come; empty when they do not.
std::optional<int> meet(const Leaving& mine) {
  Communicator& comm = *ending().mpi->at_exit;
  comm.set_timeout(patience(mine));
  try {
    return agreed_code(gather_all(comm, mine));
  } catch (const Error&) {
    return {};
  }
}

void limit_end(int code) {
  try {
    std::thread([code] {
      std::this_thread::sleep_for(kLongestEnd);
      _exit(code);
    }).detach();
  } catch (const std::system_error&) {
    _exit(code);  // no thread is to be had, so nobody could limit it
  }
}

/// Returns where exit() goes on with `status`. `well`: nothing is left half done.
void leave(int code, int status, bool well) {
  const int failed = ending().failed_rank;
  const bool by_other = failed >= 0 && failed != ending().mpi->at_exit->rank();
  std::fflush(nullptr);
  const auto agreed = meet({.code = code, .by_other = by_other ? 1 : 0});
  if (!agreed) {
    ending().mpi->session->abort(code == 0 ? 1 : code);
    _exit(code == 0 ? 1 : code);
  }
  if (!well || *agreed != 0) limit_end(*agreed);
  wait_for_ends();
  ending().things.clear();
  ending().mpi->at_exit.reset();
  ending().mpi->session.reset();
  if (*agreed != status) _exit(*agreed);
}

/// Whether all went well. What Python's code knows already is not told again.
bool end_things(int& code) {
  bool well = true;
  wait_for_ends();
  for (OpenThing& thing : ending().things) {
    try {
      thing.end();
    } catch (const std::exception& error) {
      if (!std::exchange(well, false) || ending().raised) continue;
      std::fprintf(stderr, "forebay: %s\n", error.what());
      code = 1;
    }
  }
  return well;
}

void fail_things(int code) {
  const Error error(ErrorKind::communication, fmt::format("this rank has left with code {}", code),
                    "look at what it has printed");
  for (const OpenThing& thing : ending().things) {
    try {
      thing.fail(error);
    } catch (const std::exception&) {
      // Then the launcher is who tells the others.
    }
  }
}

void at_exit(int status, void* /*nothing*/) {
  if (getpid() != ending().process) return;
  int code = status;
  bool well = false;
  if (status != 0) {
    fail_things(status);
  } else {
    well = end_things(code);
  }
  leave(code, status, well);
}

}  // namespace

ProcessMpi::ProcessMpi() : session(std::make_unique<MpiSession>()) {
  at_exit = session->world()->split(0, session->world()->rank());
}

void leave_to_exit(OpenThing thing) { ending().things.push_back(std::move(thing)); }

void end_behind(std::function<void()> end) {
  const std::lock_guard lock(ending().mutex);
  ending().behind_of = getpid();
  ending().behind.push_back(std::async(std::launch::async, std::move(end)));
}

void wait_for_ends() {
  const std::lock_guard lock(ending().mutex);
  if (ending().behind_of != getpid()) return;  // a child of fork() has none of those threads
  ending().behind.clear();                     // the end of such a future waits
}

ProcessMpi& begin_mpi() {
  const std::lock_guard lock(ending().beginning);
  if (!ending().mpi) {
    ending().mpi = std::make_unique<ProcessMpi>();
    ending().begun = ending().mpi.get();
  }
  return *ending().mpi;
}

ProcessMpi* begun_mpi() { return ending().begun; }

void end_at_exit() {
  if (std::exchange(ending().process, getpid()) == getpid()) return;
  on_exit(at_exit, nullptr);
}

void end_mpi() {
  ending().begun = nullptr;
  ending().mpi.reset();
}

void note_raised(const Error& error) {
  ending().raised = true;
  if (error.where().rank >= 0) ending().failed_rank = error.where().rank;
}

}  // namespace forebay::python
