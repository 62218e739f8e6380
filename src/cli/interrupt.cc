#include "cli/interrupt.hpp"

namespace forebay {
namespace {

// A signal handler can reach nothing but static storage.
volatile std::sig_atomic_t interrupted_flag = 0;

void remember(int) { interrupted_flag = 1; }

}  // namespace

InterruptGuard::InterruptGuard() {
  interrupted_flag = 0;
  struct sigaction action {};
  action.sa_handler = remember;
  action.sa_flags = static_cast<int>(SA_RESETHAND);
  sigaction(SIGINT, &action, &old_int_);
  sigaction(SIGTERM, &action, &old_term_);
}

InterruptGuard::~InterruptGuard() {
  sigaction(SIGINT, &old_int_, nullptr);
  sigaction(SIGTERM, &old_term_, nullptr);
}

bool InterruptGuard::interrupted() const { return interrupted_flag != 0; }

}  // namespace forebay
