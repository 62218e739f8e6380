// Doing without Python's lock, for everything that waits or copies.
//
// When the interpreter ends, threads that come back for its lock are ended by it in the middle of
// C++ frames, which ends the process. Daemon threads that were inside of the library then must not
// come back: they wait for the end of the process, as Python itself lets them from 3.14 on.
#pragma once

#include <unistd.h>

#include <atomic>

#include "module.hpp"

namespace forebay::python {

/// Of the process: set when it begins to end, by forebay/_ranks.py.
inline std::atomic<bool> process_ends = false;

/// Releases the lock for as long as it lives.
class Unlocked {
 public:
  Unlocked() : state_(PyEval_SaveThread()) {}
  Unlocked(const Unlocked&) = delete;
  Unlocked& operator=(const Unlocked&) = delete;
  ~Unlocked() {
    while (process_ends && gettid() != getpid()) pause();
    PyEval_RestoreThread(state_);
  }

 private:
  PyThreadState* state_;
};

}  // namespace forebay::python
