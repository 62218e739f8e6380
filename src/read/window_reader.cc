#include "read/window_reader.hpp"

#include "forebay/error.hpp"

namespace forebay {

WindowReader::WindowReader(PieceReader& reader, Stage& stage, int root, ReadFigures& figures)
    : reader_(reader), stage_(stage), root_(root), figures_(figures) {}

void WindowReader::fill(std::uint64_t window, std::uint64_t iterations, Interval blocked) {
  const std::uint64_t begin = window * stage_.shape().coalesce;
  wait_ns_ += blocked.end_ns - blocked.begin_ns;
  stage_.begin(root_, window);
  if (!started_ && iterations > 1) {
    read({.window = window, .phase = Phase::first, .iterations = iterations});
    stage_.publish(root_, begin + 1, blocked);
    read({.window = window, .phase = Phase::rest, .iterations = iterations});
  } else {
    read({.window = window, .phase = Phase::whole, .iterations = iterations});
  }
  started_ = true;
  stage_.publish(root_, begin + iterations, blocked);
}

void WindowReader::read(const WindowPart& part) {
  try {
    reader_.read(part);
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
