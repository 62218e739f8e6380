// How much work a randomized test does.
#pragma once

#include <cstdlib>

namespace forebay::test {

/// 1 in `make test`; `make test-full` sets FOREBAY_TEST_SCALE higher. Tests multiply their number
/// of random cases by it.
inline int test_scale() {
  const char* text = std::getenv("FOREBAY_TEST_SCALE");
  const int scale = text != nullptr ? std::atoi(text) : 1;
  return scale >= 1 ? scale : 1;
}

}  // namespace forebay::test
