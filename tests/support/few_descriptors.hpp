// A process that may open few more files.
#pragma once

#include <sys/resource.h>
#include <unistd.h>

#include "core/non_copyable.hpp"

namespace forebay::test {

/// Not where a sanitizer opens some itself.
#ifdef FOREBAY_TEST_NEEDS_DESCRIPTORS
inline constexpr bool kFewDescriptorsDo = false;
#else
inline constexpr bool kFewDescriptorsDo = true;
#endif

/// As long as it lives, the process may open `more` files at most.
class FewDescriptors : private NonCopyable {
 public:
  explicit FewDescriptors(rlim_t more) {
    getrlimit(RLIMIT_NOFILE, &before_);
    const int next = ::dup(STDIN_FILENO);
    ::close(next);
    const rlimit lower{.rlim_cur = static_cast<rlim_t>(next) + more, .rlim_max = before_.rlim_max};
    setrlimit(RLIMIT_NOFILE, &lower);
  }
  ~FewDescriptors() { setrlimit(RLIMIT_NOFILE, &before_); }

 private:
  rlimit before_{};
};

}  // namespace forebay::test
