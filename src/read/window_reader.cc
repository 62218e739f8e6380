#include "read/window_reader.hpp"

#include "forebay/error.hpp"

namespace forebay {

WindowReader::WindowReader(PieceReader& reader, Stage& stage, int root, ReadFigures& figures)
    : reader_(reader), stage_(stage), root_(root), figures_(figures) {}

void WindowReader::fill(std::uint64_t window, std::uint64_t iterations,
                        std::uint64_t next_iterations, Interval blocked) {
  const std::uint64_t begin = window * stage_.shape().coalesce;
  wait_ns_ += blocked.end_ns - blocked.begin_ns;
  std::optional<WindowPart> next;
  if (next_iterations > 0) {
    next = {.window = window + 1, .phase = Phase::whole, .iterations = next_iterations};
  }
  if (!started_ && iterations > 1) {
    const WindowPart rest{.window = window, .phase = Phase::rest, .iterations = iterations};
    read({.window = window, .phase = Phase::first, .iterations = iterations}, rest);
    stage_.publish(root_, begin + 1, blocked);
    read(rest, next);
  } else {
    read({.window = window, .phase = Phase::whole, .iterations = iterations}, next);
  }
  started_ = true;
  stage_.publish(root_, begin + iterations, blocked);
}

void WindowReader::read(const WindowPart& part, const std::optional<WindowPart>& next) {
  try {
    reader_.read(part, next);
  } catch (const Error& error) {
    // Pages that a writer has reused look damaged: that they were changed is the true cause.
    if (error.kind() == ErrorKind::corrupt) reader_.check_unchanged();
    throw;
  }
  reader_.check_unchanged();
  ReadTotals totals = reader_.totals();
  totals.wait_ns = wait_ns_;
  figures_.set(totals);
}

}  // namespace forebay
