// What happened to each tensor when, as a track of its own in the timeline (forebay/trace.hpp).
//
//   conv1   |-- waiting --|-- copy in --|------ transfer ------|-- copy out --|
#pragma once

#include <cstdint>
#include <string>
#include <unordered_map>

#include "forebay/trace.hpp"

namespace forebay {

/// Steady clock, nanoseconds.
struct TensorTimes {
  std::int64_t submitted_ns = 0;
  std::int64_t copy_in_ns = 0;
  std::int64_t transfer_ns = 0;
  std::int64_t copy_out_ns = 0;
  std::int64_t done_ns = 0;
};

/// Of one thread. Does nothing without a trace, which outlives it.
class TensorTimeline {
 public:
  explicit TensorTimeline(Trace* trace) : trace_(trace) {}

  bool wanted() const { return trace_ != nullptr; }

  void add(const std::string& name, const TensorTimes& times) {
    if (trace_ == nullptr) return;
    const auto [found, is_new] = tracks_.try_emplace(name, 0);
    if (is_new) found->second = trace_->add_track(name);
    const int track = found->second;
    trace_->add_span_to(track, "waiting", times.submitted_ns, times.copy_in_ns);
    trace_->add_span_to(track, "copy in", times.copy_in_ns, times.transfer_ns);
    trace_->add_span_to(track, "transfer", times.transfer_ns, times.copy_out_ns);
    trace_->add_span_to(track, "copy out", times.copy_out_ns, times.done_ns);
  }

 private:
  Trace* trace_;
  std::unordered_map<std::string, int> tracks_;
};

}  // namespace forebay
