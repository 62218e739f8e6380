// Ctrl-C as a question that a loop asks, instead of a death in the middle of a write.
#pragma once

#include <csignal>

namespace forebay {

/// While it lives, SIGINT and SIGTERM are remembered; a second one ends the process as usual.
/// One at a time in a process.
class InterruptGuard {
 public:
  InterruptGuard();
  ~InterruptGuard();
  InterruptGuard(const InterruptGuard&) = delete;
  InterruptGuard& operator=(const InterruptGuard&) = delete;

  bool interrupted() const;

 private:
  struct sigaction old_int_ {};
  struct sigaction old_term_ {};
};

}  // namespace forebay
