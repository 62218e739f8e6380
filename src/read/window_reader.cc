#include "read/window_reader.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "core/clock.hpp"
#include "forebay/error.hpp"

namespace forebay {

WindowReader::WindowReader(RecordSource& source, const WindowPlan& plan, Stage& stage, int root,
                           ReadFigures& figures)
    : source_(source), plan_(plan), stage_(stage), root_(root), figures_(figures) {}

void WindowReader::fill(std::uint64_t window, std::uint64_t iterations, Interval blocked) {
  const std::uint64_t begin = window * plan_.order().coalesce();
  totals_.wait_ns += blocked.end_ns - blocked.begin_ns;
  stage_.begin(root_, window);
  read_phase(window, Phase::first, iterations);
  stage_.publish(root_, begin + 1, blocked);
  if (iterations == 1) return;
  read_phase(window, Phase::rest, iterations);
  stage_.publish(root_, begin + iterations, blocked);
}

void WindowReader::read_phase(std::uint64_t window, Phase phase, std::uint64_t iterations) {
  try {
    for (const Piece& piece : plan_.pieces(root_, window, phase, iterations)) {
      read_piece(window, piece);
    }
  } catch (const Error& error) {
    // Pages that a writer has reused look damaged: that they were changed is the true cause.
    if (error.kind() == ErrorKind::corrupt) source_.check_unchanged();
    throw;
  }
  source_.check_unchanged();
  totals_.source = source_.counters();
  figures_.set(totals_);
}

void WindowReader::read_piece(std::uint64_t window, const Piece& piece) {
  std::uint64_t entry = piece.entry;
  std::uint64_t position = piece.position;
  const std::uint64_t end = piece.position + piece.count;
  while (position < end) {
    const std::uint64_t sample = plan_.order().sample(position);
    const std::uint64_t count = std::min(end - position, source_.entries() - sample);
    const std::int64_t started = now_ns();
    source_.seek(sample);
    const std::int64_t found = now_ns();
    std::uint64_t expected = sample;
    source_.read(count, [&](const Record& record) {
      if (record.sample != expected++) {
        throw Error(ErrorKind::corrupt,
                    fmt::format("the reader delivered sample {} here", record.sample),
                    "run 'forebay verify' on the data set",
                    {.file = source_.path(), .sample = expected - 1, .key = {}, .rank = -1});
      }
      stage_.append(root_, window, entry++, record.sample, record.key, record.value);
    });
    totals_.seek_ns += found - started;
    totals_.read_ns += now_ns() - found;
    position += count;
  }
}

}  // namespace forebay
