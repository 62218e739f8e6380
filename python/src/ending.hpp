// How a process that is one of several ranks ends.
//
// Python does not tell its atexit functions with which code a process ends, and what is to be done
// depends on it: a rank that is done (0) closes what it has open together with the others, however
// long they take; one that leaves (anything else) must not wait for those who wait for it. So the
// end of what is open is left to exit(), which knows the code:
//
//   atexit of Python   leave_to_exit(thing) for all that is open, then end_at_exit()
//   exit(code)         0: things end, in the order of opening; else all ranks' next calls fail
//   the meeting        where each rank tells its code: when all have come, MPI ends and every
//                      process ends with the code of the rank that left first. Who is done (0)
//                      waits for the others; who is not, for a second, then MPI_Abort ends the job
//                      with its code
//
// A rank that ends because of another's failure waits longer at the meeting than that other one, so
// that the job's code is not its own.
#pragma once

#include <functional>
#include <memory>

#include "forebay/error.hpp"
#include "forebay/mpi_session.hpp"

namespace forebay::python {

/// MPI, where it was begun for this process.
struct ProcessMpi {
  /// Collective.
  ProcessMpi();

  /// Whether it is ended here: nobody else has begun it before.
  bool is_ours() const { return session->finalizes(); }

  std::unique_ptr<MpiSession> session;
  std::shared_ptr<Communicator> at_exit;  ///< of its own: the world may be amid an operation
};

/// Something that ranks have open together.
struct OpenThing {
  std::function<void(const Error&)> fail;  ///< makes all ranks' next calls throw this
  std::function<void()> end;               ///< collective if need be; may throw Error
};

/// Python's objects are gone when `thing` ends: it must not need any.
void leave_to_exit(OpenThing thing);
/// Runs `end` in a thread of its own. It needs nothing of Python, and does not throw.
void end_behind(std::function<void()> end);
/// Waits for all that end_behind() has begun.
void wait_for_ends();

/// MPI of this process, begun by the first call, which is collective. No object of Python's owns
/// it: an interrupt may come between any two of its steps, and MPI must not end by one.
ProcessMpi& begin_mpi();
/// Null where it was not begun.
ProcessMpi* begun_mpi();
/// Leaves its end to exit().
void end_at_exit();
/// Ends it, if it was begun.
void end_mpi();

/// An error that Python's code is told: it is not reported again, and may be another rank's.
void note_raised(const Error& error);

}  // namespace forebay::python
