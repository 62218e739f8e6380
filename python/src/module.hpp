// The parts of the extension module forebay._core. Each adds its classes and functions.
//
// Python's lock (the GIL) is released around everything that waits or copies. What the library
// throws becomes forebay.Error (communicators.cc). Nothing here keeps state of its own, but
// for MPI (ending.hpp): what else must end with the process is kept by Python (forebay/_ranks.py).
#pragma once

#include <cxxabi.h>
#include <nanobind/nanobind.h>
#include <unistd.h>

#include <atomic>
#include <string>
#include <string_view>

#include "core/non_copyable.hpp"

namespace forebay::python {

namespace nb = nanobind;

void add_errors(nb::module_& module);
void add_communicators(nb::module_& module);
void add_rendezvous(nb::module_& module);
void add_loader(nb::module_& module);
void add_samples(nb::module_& module);
void add_order(nb::module_& module);
void add_sync(nb::module_& module);

// Names of files are bytes; Python's text of them is that of os.fsdecode().

inline std::string name_of(const nb::bytes& name) { return {name.c_str(), name.size()}; }
inline nb::object text_of(std::string_view text) {
  return nb::steal(
      PyUnicode_DecodeFSDefaultAndSize(text.data(), static_cast<Py_ssize_t>(text.size())));
}

// Doing without Python's lock, for everything that waits or copies.
//
// When the interpreter ends, threads that come back for its lock are ended by it in the middle of
// C++ frames, which ends the process. Daemon threads that were inside of the library then must not
// come back: they wait for the end of the process, as Python itself lets them from 3.14 on. One
// that was already waiting for the lock is caught on its way out: it must not leave, since
// destructors let nothing through.

/// Of the process: set when it begins to end, by forebay/_ranks.py.
inline std::atomic<bool> process_ends = false;

/// `take` takes Python's lock. Does not return in a thread that the end of the interpreter finds
/// here.
template <typename Take>
void come_back(const Take& take) {
  while (process_ends && gettid() != getpid()) pause();
  try {
    take();
  } catch (const abi::__forced_unwind&) {
    for (;;) pause();
  }
}

/// Releases the lock for as long as it lives; where the interpreter is gone, there is none.
class Unlocked : private NonCopyable {
 public:
  Unlocked() : state_(Py_IsInitialized() != 0 ? PyEval_SaveThread() : nullptr) {}
  ~Unlocked() {
    if (state_ == nullptr) return;
    come_back([this] { PyEval_RestoreThread(state_); });
  }

 private:
  PyThreadState* state_;
};

/// Has the lock for as long as it lives, in a thread that has released it.
class Locked : private NonCopyable {
 public:
  Locked() {
    come_back([this] { state_ = PyGILState_Ensure(); });
  }
  ~Locked() { PyGILState_Release(state_); }

 private:
  PyGILState_STATE state_ = PyGILState_UNLOCKED;
};

}  // namespace forebay::python
