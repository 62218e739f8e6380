// What a forked child must not touch: the connections of its parent.
//
// A child has copies of all descriptors. As long as it keeps them, the other ranks do not hear when
// the parent dies; so each fork closes them in the child, which then also knows that it is one.
#pragma once

#include <memory>
#include <vector>

#include "core/non_copyable.hpp"

namespace forebay::net {

class ForkGuard : private NonCopyable {
 public:
  /// `descriptors` are closed in every child that is forked from now on. Thread-safe.
  explicit ForkGuard(std::vector<int> descriptors);
  /// Not to be called in a child.
  ~ForkGuard();

  /// Whether this process was forked after the guard was made. Cheap.
  bool in_child() const;

 private:
  std::vector<int> descriptors_;
  unsigned forks_;
};

}  // namespace forebay::net
