// Work that reads, by a thread that can be left behind when storage does not answer it.
//
//   caller:  sleeps, looks every so often what the thread waits for (core/read_watch.hpp)
//   thread:  step() ... read ... read .................... that one never returns
//                              |<------- limit ------->| the caller goes on, with an error
//
// This is the one way in which opening, reading and the commands keep --timeout. (Bulk readers keep
// it for the threads and rings of their own, as they also know how to give up a part of their
// work.)
#pragma once

#include <chrono>
#include <functional>
#include <stop_token>
#include <string>

#include "core/placement.hpp"

namespace forebay {

/// How long storage may take, and what is told when it takes longer.
struct AnswerLimit {
  std::chrono::milliseconds each_read{0};  ///< 0: for ever, in the calling thread
  std::string path = {};                   ///< of what is read, where the system does not tell
  /// Once asked to stop, what waits for storage is left behind within about a second.
  std::stop_token stop = {};
};

/// Calls `step` in a thread named `name`, unless somebody watches the calling thread already, and
/// returns when it has returned. Throws what it throws; io, naming file and offset, when a read of
/// its thread, or of one that this has made, has had no answer for the limit. False after a stop
/// that a read did not heed. In these two cases the thread goes on alone: so `step` owns all it
/// uses.
bool with_answers(const AnswerLimit& limit, const std::string& name, const Placement& placement,
                  std::function<void()> step);

/// Whether any thread of this process was left behind. Then it ends without its destructors: what
/// they would wait for may never come.
bool left_threads_behind() noexcept;

}  // namespace forebay
