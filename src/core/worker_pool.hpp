// Equal work on several cores: a call of run() is shared by threads that wait for the next one.
//
//   caller:   run(n, fn) -> takes indices too -> waits for those that others have taken -> returns
//   worker:   sleeps until there is a run -> takes the next index, calls fn(index) -> ...
//
// Indices are handed out in ascending order, one at a time, so that long and short ones mix. When a
// call throws, no more are handed out; of the calls that did run, the error of the lowest index is
// thrown. All indices below it were called then, which makes the error the one that a plain loop
// would have thrown: it does not depend on timing.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <exception>
#include <functional>
#include <mutex>
#include <stop_token>
#include <string>
#include <vector>

#include "core/non_copyable.hpp"
#include "core/placement.hpp"

namespace forebay {

/// Belongs to one caller at a time; its threads sleep between the runs.
class WorkerPool : private NonCopyable {
 public:
  /// Called with an index, in any of the threads. May throw.
  using Work = std::function<void(std::size_t index)>;

  /// `threads` in all, the caller of run() among them: with 0 or 1 run() is a plain loop, and no
  /// thread is started. The others are named `name`-1, `name`-2, ...
  /// Throws usage for a placement that is not possible.
  WorkerPool(const std::string& name, unsigned threads, const Placement& placement = {});
  /// No run may be in progress.
  ~WorkerPool();

  /// Calls work(0) ... work(count - 1), each once, and returns when all calls have ended. Throws
  /// what the call with the lowest index of those that threw did; those behind it may be left out.
  void run(std::size_t count, const Work& work);
  unsigned threads() const { return static_cast<unsigned>(workers_.size()) + 1; }

 private:
  void live(const std::stop_token& stop);
  void take_part(std::unique_lock<std::mutex>& lock);
  void call(std::size_t index, std::unique_lock<std::mutex>& lock);

  std::mutex mutex_;
  std::condition_variable_any started_;
  std::condition_variable ended_;
  // All below is guarded by mutex_.
  const Work* work_ = nullptr;  // of the run in progress
  std::size_t count_ = 0;       // indices below it are to be called
  std::size_t next_ = 0;
  std::size_t running_ = 0;  // calls that have not returned
  std::exception_ptr error_;
  std::size_t failed_ = 0;  // the index of error_

  std::vector<HelperThread> workers_;  // last: they end before what they use
};

/// `wanted`, or where the user leaves the number to us (0): one thread a core that is left for this
/// process when `ranks` of its kind share them, at least one and at most `most`. Local.
unsigned choose_workers(unsigned wanted, int ranks, unsigned most);
/// Likewise where the threads are placed: one a core of theirs.
unsigned choose_workers(unsigned wanted, const Placement& placement, int ranks, unsigned most);

}  // namespace forebay
