#include "comm/gate.hpp"

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <climits>
#include <ctime>

namespace forebay {

void Gate::notify_all() {
  version_.fetch_add(1);
  if (waiters_.load() == 0) return;
  syscall(SYS_futex, &version_, FUTEX_WAKE, INT_MAX, nullptr, nullptr, 0);
}

void Gate::sleep_while(std::uint32_t version, std::chrono::nanoseconds limit) {
  constexpr std::int64_t kSecond = 1'000'000'000;
  const timespec timeout{.tv_sec = limit.count() / kSecond, .tv_nsec = limit.count() % kSecond};
  // Interruption, a changed version and the timeout all mean the same to the caller: look again.
  syscall(SYS_futex, &version_, FUTEX_WAIT, version, &timeout, nullptr, 0);
}

}  // namespace forebay
