// Helper threads: how they are named, where they run, and how they end.
//
// Every helper thread of Forebay is a HelperThread, so that tools show who is who ('top -H', the
// trace), so that one policy decides which cores they may take from the computation, and so that
// none outlives its owner.
//
//   shared      the thread runs wherever its process may run
//   cores:LIST  the thread runs on these cores only, e.g. "cores:0,2-3" (operating system numbers)
#pragma once

#include <chrono>
#include <functional>
#include <future>
#include <stop_token>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "forebay/placement.hpp"

namespace forebay {

struct Placement {
  /// The cores to run on, ascending; empty is `shared`.
  std::vector<int> cores;

  /// Reads "shared" or "cores:LIST". Throws usage.
  static Placement parse(std::string_view text);
  /// That of the threads of one component.
  static Placement of(const CorePlan& plan, Component component);
  std::string to_text() const;
  bool operator==(const Placement&) const = default;
};

/// The cores on which this process may run (hwloc), ascending. Local; takes some milliseconds.
std::vector<int> available_cores();

/// The NUMA node (operating system number) that all cores of this process belong to; -1 when they
/// belong to several or the machine does not tell. Local; takes some milliseconds.
int numa_node_of_this_process();

/// Binds the calling thread. Throws usage when a core is not available to this process.
/// `shared` returns at once and does not even look at the machine.
void place_this_thread(const Placement& placement);

/// At most 15 characters reach the kernel; the rest is cut.
void name_this_thread(const std::string& name);

/// Asks for short turns of the calling thread, for threads that sleep, wake for some microseconds,
/// and are waited for: where all cores compute, the kernel then lets them run at once, instead of
/// after the turn of a computing thread (3 ms or so). Needs Linux 6.12; without effect elsewhere.
void ask_for_short_turns() noexcept;

/// A thread that is asked to stop and joined at destruction. Movable, not copyable.
class HelperThread {
 public:
  using Body = std::function<void(std::stop_token)>;

  HelperThread() = default;
  /// Starts `body`, named and placed. `body` must return soon after a stop request, and must not
  /// throw: an exception that leaves it ends the program, as with std::thread.
  /// Throws usage for a placement that is not possible, and io where the system starts no more
  /// threads; then nothing was started.
  HelperThread(std::string name, const Placement& placement, Body body);

  bool running() const { return thread_.joinable(); }
  void request_stop() { thread_.request_stop(); }
  /// Requests a stop and waits for the end of the body. Idempotent.
  void stop();
  /// Requests a stop, and waits at most `limit` for the end of the body; tells whether it has
  /// ended. Then stop() joins the thread at once, unless the kernel holds it back (see abandon()).
  bool ended_within(std::chrono::milliseconds limit);
  /// Requests a stop and waits for nothing: for a body that is stuck in a system call which may
  /// never return, or has left io_uring requests behind, for which the kernel makes the ending
  /// thread wait. The body must own all that it uses.
  void abandon();

 private:
  std::future<void> ended_;
  std::jthread thread_;
};

// Calls of code that may never return, because it is not ours: a thread makes them, and is left
// behind when it does not come back.

/// Calls `call` in a thread named `name`, and waits at most `limit` for it to return. Throws what
/// it throws. False: it has not returned, and goes on alone; so `call` owns all that it uses.
bool returns_within(std::chrono::milliseconds limit, const std::string& name,
                    std::function<void()> call);

}  // namespace forebay
