// The base of what is neither copied nor moved: it owns something, or others hold its address.
#pragma once

namespace forebay {

class NonCopyable {
 protected:
  NonCopyable() = default;
  ~NonCopyable() = default;
  NonCopyable(const NonCopyable&) = delete;
  NonCopyable& operator=(const NonCopyable&) = delete;
};

}  // namespace forebay
