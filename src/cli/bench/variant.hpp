// What is compared: a strategy, and knobs turned on top of it; or knobs alone.
//
//   lmdb      lmm-dio      lmm-dio+engine=uring+depth=32      order=grouped+group=128+buffers=1
#pragma once

#include <string>
#include <vector>

#include "forebay/options.hpp"

namespace forebay::bench {

struct Variant {
  std::string name;  ///< as written
  LoaderOptions options;
};

/// `words` may hold several variants each, separated by commas; knobs go on top of `base`.
/// Empty: every strategy that this version has. Throws usage for unknown names and for repetitions.
std::vector<Variant> parse_variants(const std::vector<std::string>& words,
                                    const LoaderOptions& base);

}  // namespace forebay::bench
