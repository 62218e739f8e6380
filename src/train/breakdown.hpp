// Where the time of a training run went, in the categories of the papers.
//
//   read            waited for data, or for threads that decode them: exposed I/O
//   skew            waited for slower ranks before the exchange of gradients ended (only known when
//                   measured, else part of parameter sync) and while loading
//   decode          labels and targets out of decoded fields
//   forward         loss of the batch, input conversion included
//   backward        gradients
//   parameter sync  waited for the sums of gradients after the backward pass; what was summed
//                   during that pass is not in here: exposed synchronization
//   update          the solver
//   test            everything about the test set
//   other           the rest of the wall time: logging, checkpoints, start of the loop
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "core/clock.hpp"
#include "forebay/trace.hpp"

namespace forebay {

enum class Phase : std::uint8_t {
  read,
  skew,
  decode,
  forward,
  backward,
  sync,
  update,
  test,
  other,
};
inline constexpr std::size_t kPhases = 9;

/// Ends with a zero byte, and lives as long as the program.
std::string_view to_string(Phase phase);

/// Seconds of one rank. A plain value, so that ranks can exchange it as bytes.
struct Breakdown {
  std::array<double, kPhases> seconds{};
  double total = 0;          ///< wall time of the training loop
  std::uint64_t images = 0;  ///< trained by this rank

  double& operator[](Phase phase) { return seconds[static_cast<std::size_t>(phase)]; }
  double operator[](Phase phase) const { return seconds[static_cast<std::size_t>(phase)]; }

  /// Sets `total`, and `other` to what the other phases leave of it.
  void close(double wall_seconds);
};

/// Images of all ranks over the time of training alone: the slowest rank's, without test.
double images_per_second(std::span<const Breakdown> ranks);

/// A table for people: one line a phase, one column a rank (up to eight of them), mean and share.
std::string to_table(std::span<const Breakdown> ranks);

/// Adds the time of its scope to a phase, and shows it in the timeline if there is one.
class PhaseTimer {
 public:
  PhaseTimer(Breakdown& breakdown, Phase phase, Trace* trace, std::uint64_t iteration)
      : watch_(breakdown[phase]), span_(trace, to_string(phase).data(), iteration) {}

 private:
  Stopwatch watch_;
  TraceSpan span_;
};

}  // namespace forebay
