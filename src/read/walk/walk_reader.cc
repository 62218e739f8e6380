#include "read/walk/walk_reader.hpp"

#include <fmt/format.h>

#include "core/clock.hpp"
#include "forebay/error.hpp"

namespace forebay {

void WalkReader::read(const WindowPart& part, const std::optional<WindowPart>&) {
  if (part.phase != Phase::rest) stage_.begin(root_, part.window);
  const auto runs = list_.runs(part);
  Turns::Turn turn(turns_);
  const std::uint64_t before = source_.counters().bytes_requested;
  for (const SampleRun& run : runs) read_run(part.window, run);
  turn.count(source_.counters().bytes_requested - before);
}

void WalkReader::read_run(std::uint64_t window, const SampleRun& run) {
  const std::int64_t started = now_ns();
  source_.seek(run.sample);
  const std::int64_t found = now_ns();
  std::uint64_t expected = run.sample;
  source_.read(run.count, [&](const Record& record) {
    if (record.sample != expected) {
      throw Error(ErrorKind::corrupt,
                  fmt::format("the reader delivered sample {} here", record.sample),
                  "run 'forebay verify' on the data set",
                  {.file = source_.path(), .sample = expected, .key = {}, .rank = -1});
    }
    const std::uint64_t entry = run.entry + (expected++ - run.sample);
    stage_.append(root_, window, entry, record.sample, record.key, record.value);
  });
  totals_.seek_ns += found - started;
  totals_.read_ns += now_ns() - found;
}

ReadTotals WalkReader::totals() const {
  ReadTotals totals = totals_;
  totals.turn_seconds = turns_.waited_seconds();
  totals.source = source_.counters();
  return totals;
}

}  // namespace forebay
