#include "read/walk/walks.hpp"

#include <fmt/format.h>

#include "core/clock.hpp"
#include "forebay/error.hpp"
#include "format/lmdb/baseline_source.hpp"
#include "format/lmdb/lmdb_set.hpp"
#include "format/lmdb/lmdb_source.hpp"
#include "read/walk/handoff_reader.hpp"
#include "read/walk/scattered_index.hpp"

namespace forebay {
namespace {

lmdb::LmdbSet& tree_of(DataSet& data, const ReadSetup& setup) {
  if (auto* set = dynamic_cast<lmdb::LmdbSet*>(&data)) return *set;
  throw Error(
      ErrorKind::usage,
      setup.how_walked +
          " walks over the records of one database, and by their convention "
          "the samples of this data set are not simply that",
      "use --strategy auto or one of those from lmm-dio on, or --convention plain for every "
      "record of a single database");
}

}  // namespace

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
  turns_.add_to(totals);
  totals.source = source_.counters();
  return totals;
}

bool may_walk(const DataSet& data) { return dynamic_cast<const lmdb::LmdbSet*>(&data) != nullptr; }

std::unique_ptr<RecordSource> open_walk(DataSet& data, const ReadSetup& setup) {
  lmdb::LmdbSet& set = tree_of(data, setup);
  if (setup.baseline) return std::make_unique<lmdb::BaselineSource>(data.facts().path);
  const lmdb::Database& database = set.database();
  database.remember_records();
  return std::make_unique<lmdb::LmdbSource>(
      lmdb::Database::open(database.shared_snapshot(), database.name(), false));
}

std::unique_ptr<PieceReader> make_walking_reader(RecordSource& source, const ReadSetup& setup,
                                                 const ReaderSite& site,
                                                 std::chrono::milliseconds patience) {
  if (setup.locate != Locate::handoff) {
    return std::make_unique<WalkReader>(source, site.list, site.stage, site.root, site.turns);
  }
  HandoffParts parts{.source = static_cast<lmdb::LmdbSource&>(source),
                     .plan = HandOffPlan(site.map, site.first_iteration, site.end_iteration),
                     .me = site.roots->rank(),
                     .link = CursorLink(site.roots, patience),
                     .give_up = site.give_up};
  return std::make_unique<HandoffReader>(std::move(parts), *site.plan, site.stage, site.root,
                                         site.turns);
}

void read_scattered(DataSet& data, const ReaderSite& site, std::chrono::milliseconds patience,
                    PlanReaderParts& parts) {
  auto& set = dynamic_cast<lmdb::LmdbSet&>(data);
  const auto index = std::make_shared<ScatteredIndex>(set.database(), site.map, site.roots,
                                                      patience, site.give_up);
  set.use_index(index);
  // Also when this root has given it up: others may go on with it.
  parts.prepare = [index](const WindowPart& part) { index->prepare(part); };
  parts.leave = [index, first = std::move(parts.leave)] {
    if (first) first();
    index->leave();
  };
}

}  // namespace forebay
