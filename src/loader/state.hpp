// What a run must remember to go on later: a small JSON value.
//
//   {"version":1,"order":"strided","fingerprint":"lmdb:...","entries":60000,"coalesce":1,"epoch":2,
//    "segments":[{"ranks":4,"batch":256,"iterations":500}]}
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "forebay/options.hpp"

namespace forebay {

struct RunState {
  std::string fingerprint;
  std::uint64_t coalesce = 1;
  std::uint64_t entries = 0;
  std::vector<Segment> segments;
};

std::string write_state(const RunState& state);
/// Throws usage when `text` is no state, or one of a version that this one does not know.
RunState read_state(const std::string& text);

}  // namespace forebay
