// What a run must remember to go on later: a small JSON value.
//
//   {"version":1,"order":"strided","fingerprint":"lmdb:...","entries":60000,"epoch":2,
//    "segments":[{"ranks":4,"batch":256,"iterations":500}],"coalesce":1}
//
// The segments of a strided order are those of the whole run. One that came to the last window of a
// run limited to whole epochs also has "epochs", its limit, which makes the state version 2. Those
// of the other orders are of the epoch, and instead of "coalesce" there is
//
//    "identity":"order=shuffled,entries=60000,seed=7,...","iterations":1500
//
// with the iterations of the whole run. Where roots have tried out how many of them should read at
// once, "stagger":{"at_once":4,"roots":16} keeps the answer.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "forebay/options.hpp"
#include "forebay/order.hpp"

namespace forebay {

struct RunState {
  OrderName order = OrderName::strided;
  std::string fingerprint;
  std::uint64_t coalesce = 1;  ///< of a strided order
  std::uint64_t entries = 0;
  std::string identity;  ///< OrderOptions::identity(), of the other orders
  std::uint64_t epoch = 0;
  std::uint64_t iterations = 0;
  std::vector<Segment> segments;
  KnownStagger stagger;
};

std::string write_state(const RunState& state);
/// Throws usage when `text` is no state, one of a version that this one does not know, or has
/// numbers that no run can have.
RunState read_state(const std::string& text);

}  // namespace forebay
