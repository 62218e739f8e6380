// The base of what is neither copied nor moved: it owns something, or others hold its address.
#pragma once

namespace forebay {

class NonCopyable {
 public:
  NonCopyable(const NonCopyable&) = delete;
  NonCopyable& operator=(const NonCopyable&) = delete;

 protected:
  NonCopyable() = default;
  ~NonCopyable() = default;
};

}  // namespace forebay
