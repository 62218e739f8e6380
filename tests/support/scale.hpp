// How much work a randomized test does.
#pragma once

#include <algorithm>
#include <cstdlib>

namespace forebay::test {

/// 1 unless FOREBAY_TEST_SCALE says otherwise: more in `make test-full`, less where `make test`
/// repeats under the thread sanitizer what it has run already.
inline double test_scale() {
  const char* text = std::getenv("FOREBAY_TEST_SCALE");
  const double scale = text != nullptr ? std::atof(text) : 1;
  return scale > 0 ? scale : 1;
}

/// How many cases a randomized test draws that draws `number` at a scale of 1.
template <typename Number>
Number random_cases(Number number) {
  return std::max(Number{1}, static_cast<Number>(static_cast<double>(number) * test_scale()));
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

/// The same for a test whose cases are long: under a sanitizer a quarter of them.
inline int long_cases(int number) {
  return random_cases(kSanitized ? std::max(1, number / 4) : number);
}

}  // namespace forebay::test
