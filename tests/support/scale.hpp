// How much work a randomized test does.
#pragma once

#include <algorithm>
#include <cstdlib>

namespace forebay::test {

/// 1 in `make test`; `make test-full` sets FOREBAY_TEST_SCALE higher. Tests multiply their number
/// of random cases by it.
inline int test_scale() {
  const char* text = std::getenv("FOREBAY_TEST_SCALE");
  const int scale = text != nullptr ? std::atoi(text) : 1;
  return scale >= 1 ? scale : 1;
}

/// Whether a sanitizer looks on, under which a case takes several times as long.
#if defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
inline constexpr bool kSanitized = true;
#else
inline constexpr bool kSanitized = false;
#endif
#elif defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
inline constexpr bool kSanitized = true;
#else
inline constexpr bool kSanitized = false;
#endif

/// Random cases of a test whose cases are long: `number` times the scale, and under a sanitizer a
/// quarter of that.
inline int long_cases(int number) {
  return std::max(1, number * test_scale() / (kSanitized ? 4 : 1));
}

}  // namespace forebay::test
