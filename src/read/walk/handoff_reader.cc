#include "read/walk/handoff_reader.hpp"

#include <algorithm>
#include <utility>

#include "core/clock.hpp"
#include "core/non_copyable.hpp"
#include "forebay/error.hpp"
#include "read/reading_list.hpp"

namespace forebay {
namespace {

/// Notes the leaves and overflow pages that are used while it lives.
class PageWatch : private NonCopyable {
 public:
  explicit PageWatch(lmdb::PageReader& pages) : pages_(pages) {
    pages_.watch([this](lmdb::PageNumber first, std::uint64_t count) {
      used_.push_back({.first = first, .count = count});
    });
  }
  ~PageWatch() { pages_.watch({}); }
  std::vector<PageRange> take() { return joined(std::exchange(used_, {})); }

 private:
  lmdb::PageReader& pages_;
  std::vector<PageRange> used_;
};

}  // namespace

HandoffReader::HandoffReader(HandoffParts parts, const WindowPlan& plan, Stage& stage, int root,
                             Turns& turns)
    : parts_(std::move(parts)),
      plan_(plan),
      stage_(stage),
      root_(root),
      turns_(turns),
      speculation_(parts_.source.database()) {}

void HandoffReader::read(const WindowPart& part, const std::optional<WindowPart>&) {
  if (part.phase == Phase::rest) return;  // came with the first
  stage_.begin(root_, part.window);
  const WindowPart whole{
      .window = part.window, .phase = Phase::whole, .iterations = part.iterations};
  auto pieces = plan_.pieces(root_, whole);
  std::ranges::sort(pieces, {}, &Piece::position);
  std::vector<Begun> legs;
  for (const Leg& leg : parts_.plan.legs(parts_.me, part.window)) legs.push_back({.leg = leg});
  touch_guesses(legs);
  for (Begun& leg : legs) {
    PageWatch watch(parts_.source.database().pages());
    walk(leg);
    copy(part.window, leg, pieces);
    learn(leg, watch.take());
  }
}

void HandoffReader::touch_guesses(std::vector<Begun>& legs) {
  Turns::Turn turn(turns_);
  const std::int64_t started = now_ns();
  const lmdb::Database& database = parts_.source.database();
  for (Begun& leg : legs) {
    leg.guess = guess(leg.leg);
    std::uint64_t pages = leg.guess.leaves.size();
    for (const PageRange& values : leg.guess.values) {
      pages += touch(database.snapshot().file(), values, database.page_size(), parts_.give_up);
    }
    turn.count(pages * database.page_size());
  }
  totals_.read_ns += now_ns() - started;
}

/// Its values joined, for long reads.
GuessedPages HandoffReader::guess(const Leg& leg) {
  const Piece piece{.position = leg.position, .count = leg.count};
  GuessedPages pages;
  for (const SampleRun& run : sample_runs(plan_.order(), {&piece, 1})) {
    speculation_.guess(run.sample, run.count, pages);
  }
  pages.values = joined(std::move(pages.values));
  return pages;
}

/// Finds the first record, and the next root's first record for the next root.
void HandoffReader::walk(Begun& leg) {
  const std::int64_t started = now_ns();
  leg.start = start_of(leg.leg);
  if (leg.leg.to != kNobody) {
    lmdb::Cursor end = leg.start;
    const std::uint64_t next = sample(leg.leg.position + leg.leg.count);
    parts_.source.database().tree().seek_record(end, next);
    if (leg.leg.to == parts_.me) {
      kept_ = end;
    } else {
      parts_.link.send(leg.leg.to, end, next);
    }
  }
  totals_.seek_ns += now_ns() - started;
}

lmdb::Cursor HandoffReader::start_of(const Leg& leg) {
  const std::uint64_t first = sample(leg.position);
  lmdb::Cursor cursor;
  if (leg.from == parts_.me) {
    cursor = kept_;
  } else if (leg.from != kNobody) {
    const auto received = parts_.link.receive(leg.from, first, parts_.give_up);
    if (!received) throw Error(ErrorKind::cancelled, "the wait for a cursor was given up");
    cursor = *received;
  }
  parts_.source.database().tree().seek_record(cursor, first);
  return cursor;
}

void HandoffReader::copy(std::uint64_t window, const Begun& leg, std::span<const Piece> pieces) {
  const std::int64_t started = now_ns();
  parts_.source.start_at(leg.start);
  const std::uint64_t end = leg.leg.position + leg.leg.count;
  for (const Piece& piece : pieces) {
    if (piece.position < leg.leg.position || piece.position >= end) continue;
    for (const SampleRun& run : sample_runs(plan_.order(), {&piece, 1})) {
      parts_.source.seek(run.sample);
      parts_.source.read(run.count, [&](const Record& record) {
        const std::uint64_t entry = run.entry + (record.sample - run.sample);
        stage_.append(root_, window, entry, record.sample, record.key, record.value);
      });
    }
  }
  totals_.read_ns += now_ns() - started;
}

void HandoffReader::learn(const Begun& leg, std::span<const PageRange> used) {
  std::vector<PageRange> guess = leg.guess.leaves;
  guess.insert(guess.end(), leg.guess.values.begin(), leg.guess.values.end());
  const SpeculationFigures figures = compare(joined(std::move(guess)), used);
  totals_.missed_pages += figures.missed;
  totals_.redundant_pages += figures.redundant;
  count_touched(leg.guess.values, used);
  speculation_.learn(leg.start, parts_.source.cursor());
}

/// The source counts what it looks at: leaves, and values that are used. In a mapping the others
/// are left to be counted; without one, all of them were read, and those that are used once more.
void HandoffReader::count_touched(std::span<const PageRange> touched,
                                  std::span<const PageRange> used) {
  const lmdb::Database& database = parts_.source.database();
  const bool mapped = !database.snapshot().file().map().empty();
  const SpeculationFigures figures = compare(touched, used);
  touched_bytes_ += (mapped ? figures.redundant : figures.guessed) * database.page_size();
}

ReadTotals HandoffReader::totals() const {
  ReadTotals totals = totals_;
  turns_.add_to(totals);
  totals.source = parts_.source.counters();
  totals.source.bytes_requested += touched_bytes_;
  return totals;
}

}  // namespace forebay
