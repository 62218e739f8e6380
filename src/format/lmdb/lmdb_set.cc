#include "format/lmdb/lmdb_set.hpp"

#include <algorithm>
#include <array>
#include <functional>
#include <nlohmann/json.hpp>
#include <optional>
#include <tuple>

#include "core/log.hpp"
#include "format/class_names.hpp"
#include "format/lmdb/inspect.hpp"
#include "format/lmdb/leaf_index.hpp"
#include "format/lmdb/verify.hpp"

namespace forebay::lmdb {

/// An index, its lock, which plans share, and what it refers to.
struct LockedIndex {
  std::mutex mutex;
  std::shared_ptr<void> database;
  PeerMemory memory;
  std::shared_ptr<RecordIndex> index;
};

namespace {

/// By file and offset; runs of records that are not neighbours may have named a leaf more than
/// once.
void sort(std::vector<FileExtent>& extents) {
  const auto place = [](const FileExtent& e) { return std::tuple(e.file, e.offset); };
  if (!std::ranges::is_sorted(extents, {}, place)) std::ranges::sort(extents, {}, place);
  extents.erase(std::unique(extents.begin(), extents.end()), extents.end());
}

/// A plan of records by an index: their leaves and overflow runs; keys and values where they lie.
class RecordPlan final : public Plan {
 public:
  RecordPlan(std::shared_ptr<LockedIndex> index, std::span<const IdRun> runs);

  std::span<const std::byte> part(std::size_t position, std::size_t part, const FileBytes& bytes,
                                  std::span<const std::byte> scratch) const override;
  std::span<const std::byte> key(std::size_t position, const FileBytes& bytes) const override;
  void unpack(std::size_t parts, const FileBytes& bytes, std::span<const std::byte> scratch,
              const FoundSink& sink) const override;

 private:
  struct PlannedRun {
    IdRun ids;
    std::size_t position = 0;  ///< of the first
  };

  void find_extents() const override;
  Record record(std::size_t position, const FileBytes& bytes) const;

  std::shared_ptr<LockedIndex> index_;
  std::vector<PlannedRun> runs_;
  mutable bool found_ = false;  ///< the extents; under the lock
};

RecordPlan::RecordPlan(std::shared_ptr<LockedIndex> index, std::span<const IdRun> runs)
    : Plan(count_of(runs)), index_(std::move(index)) {
  runs_.reserve(runs.size());
  std::size_t position = 0;
  for (const IdRun& run : runs) {
    runs_.push_back({.ids = run, .position = position});
    position += run.count;
  }
}

// Whoever uses the file where it is mapped does not need them.
void RecordPlan::find_extents() const {
  const std::scoped_lock lock(index_->mutex);
  if (found_) return;
  extents_.clear();
  named_ = 0;
  FileExtent leaf;
  for (const PlannedRun& run : runs_) {
    const std::size_t begin = extents_.size();
    index_->index->extents(run.ids.first, run.ids.count, extents_);
    named_ += extents_.size() - begin;
    // In order of ids, one run often begins on the leaf of the one before: once is enough then, and
    // leaves nothing to sort where records were written in order.
    const auto mine = std::span(extents_).subspan(begin);
    const bool again = !mine.empty() && mine.front() == leaf;
    const auto last = std::find_if(mine.rbegin(), mine.rend(), std::mem_fn(&FileExtent::common));
    if (last != mine.rend()) leaf = *last;
    if (again) extents_.erase(extents_.begin() + static_cast<std::ptrdiff_t>(begin));
  }
  sort(extents_);
  found_ = true;
}

Record RecordPlan::record(std::size_t position, const FileBytes& bytes) const {
  const auto after = std::ranges::upper_bound(runs_, position, {}, &PlannedRun::position);
  const PlannedRun& run = *(after - 1);
  Record found;
  const std::scoped_lock lock(index_->mutex);
  index_->index->unpack(run.ids.first + (position - run.position), 1, bytes,
                        [&found](const Record& record) { found = record; });
  return found;
}

std::span<const std::byte> RecordPlan::part(std::size_t position, std::size_t,
                                            const FileBytes& bytes,
                                            std::span<const std::byte>) const {
  return record(position, bytes).value;
}

std::span<const std::byte> RecordPlan::key(std::size_t position, const FileBytes& bytes) const {
  return record(position, bytes).key;
}

void RecordPlan::unpack(std::size_t, const FileBytes& bytes, std::span<const std::byte>,
                        const FoundSink& sink) const {
  const std::scoped_lock lock(index_->mutex);
  for (const PlannedRun& run : runs_) {
    std::size_t position = run.position;
    index_->index->unpack(run.ids.first, run.ids.count, bytes, [&](const Record& record) {
      sink({.position = position++, .key = record.key, .parts = {&record.value, 1}});
    });
  }
}

}  // namespace

LmdbSet::LmdbSet(std::string path, Database database, LmdbSetOptions options)
    : DataSet(std::move(path), "lmdb", {database.snapshot().shared_file()}),
      database_(std::make_shared<Database>(std::move(database))),
      options_(std::move(options)) {
  facts_.entries = database_->entries();
  facts_.stored = {{.how = "leaves and overflow pages", .in_place = true}};
  facts_.value_bytes = database_->stored_bytes();
  facts_.sample_bytes = facts_.entries > 0 ? facts_.value_bytes / facts_.entries : 0;
  facts_.named = facts_.keys_in_bytes = true;
  facts_.fingerprint = database_->fingerprint().text;
  facts_.labels = class_names_beside(files()[0]->path());
  if (!options_.note.empty()) facts_.notes.push_back(options_.note);
}

void LmdbSet::check_unchanged(std::uint32_t) const {
  database_->check_unchanged();
  // The first record when it may have been read, and the last one not at once: a first batch reads
  // nothing but itself.
  constexpr int kBehindFirstBatch = 7;
  const std::scoped_lock lock(mutex_);
  if (!index_ || checks_ == kBehindFirstBatch) return;
  ++checks_;
  if (checks_ != 1 && checks_ != kBehindFirstBatch) return;
  const std::scoped_lock of_index(index_->mutex);
  remember_record(*index_->index, checks_ == 1 ? 0 : facts_.entries - 1);
}

void LmdbSet::locate(Peers& peers, BulkReader& reader) {
  const std::scoped_lock lock(mutex_);
  make_index(peers, reader);
}

/// Under the mutex.
void LmdbSet::make_index(Peers& peers, BulkReader& reader) const {
  LocateOptions how = options_.locate;
  how.trust_sidecars = how.trust_sidecars && !given_up_;
  how.was_wrong = given_up_;
  FoundLeaves leaves = find_leaves(database_, reader, how, peers);
  std::uint64_t bytes = 0;
  auto index = std::make_shared<LockedIndex>();
  index->database = database_;
  peers.together([&] {
    bytes = required_bytes(*leaves.producer, facts_of(*database_));
    index->memory = peers.share(bytes);
  });
  peers.together([&] {
    how_ = leaves.how;
    cached_ = leaves.cached;
    index->index = std::make_unique<LeafIndex>(std::move(leaves.producer), facts_of(*database_),
                                               database_->pages(),
                                               IndexMemory{.bytes = index->memory.bytes,
                                                           .reserve = index->memory.reserve,
                                                           .patience = how.patience});
  });
  index_bytes_ = bytes;
  index_ = std::move(index);
}

void LmdbSet::remember_record(RecordIndex& index, std::uint64_t id) const {
  if (!database_->snapshot().has_times() || id >= facts_.entries) return;
  std::vector<FileExtent> extents;
  try {
    index.extents(id, 1, extents);
    for (const FileExtent& one : extents) database_->snapshot().remember(one.offset, one.length);
  } catch (const Error& error) {
    // Damage is told by whoever wants what is damaged.
    log(LogLevel::debug, "{}", error.what());
  }
}

void LmdbSet::use_index(std::shared_ptr<RecordIndex> index) {
  database_->remember_records();  // which such an index walks to anyway
  const std::scoped_lock lock(mutex_);
  index_ = std::make_shared<LockedIndex>();
  index_->database = database_;
  index_->index = std::move(index);
}

std::unique_ptr<const Plan> LmdbSet::plan_runs(std::span<const IdRun> runs) const {
  require_runs(runs);
  std::shared_ptr<LockedIndex> index;
  {
    const std::scoped_lock lock(mutex_);
    if (!index_) {
      make_index(no_peers(), *make_bulk_reader(whole(), Engine::pread, options_.bulk));
    }
    index = index_;
  }
  return std::make_unique<RecordPlan>(std::move(index), runs);
}

std::optional<LmdbSet::GivenUp> LmdbSet::give_up() const {
  const std::scoped_lock lock(mutex_);
  if (given_up_) return std::nullopt;
  given_up_ = true;
  // A scan that is wrong as well is made anew all the same: with peers, another may have erred.
  const auto index = std::exchange(index_, nullptr);
  if (!index) return GivenUp{};
  const std::scoped_lock of_index(index->mutex);
  return GivenUp{.first = index->index->give_up(), .cached = cached_};
}

void LmdbSet::tell_given_up(const GivenUp& given_up, const Error& mismatch) {
  if (given_up.cached) {
    log(LogLevel::info, "the cache has the index of another data set, which is replaced: {}",
        mismatch.happened());
  } else {
    log(given_up.first ? LogLevel::warning : LogLevel::info,
        "the index does not fit the data and is not used: {}", mismatch.what());
  }
}

bool LmdbSet::give_up_index(const Error& mismatch) const {
  const auto given_up = give_up();
  if (given_up) tell_given_up(*given_up, mismatch);
  return given_up.has_value();
}

std::uint64_t LmdbSet::index_bytes() const {
  const std::scoped_lock lock(mutex_);
  return index_bytes_;
}

std::uint64_t LmdbSet::used_index_bytes() const {
  const std::scoped_lock lock(mutex_);
  return index_ ? index_->index->memory_bytes() : 0;
}

std::string LmdbSet::describe() const {
  const std::scoped_lock lock(mutex_);
  return how_;
}

DecodeCounters LmdbSet::counters() const {
  const std::scoped_lock lock(mutex_);
  const PageCounters pages = database_->pages().counters();
  return {.requests = pages.requests, .bytes_requested = pages.bytes, .pages_visited = pages.pages};
}

/// A reader of its own: others may look samples up meanwhile.
Database LmdbSet::opened_again() const {
  return Database::open(database_->shared_snapshot(), database_->name(), true);
}

void LmdbSet::keys(const KeySink& sink) const {
  Database own = opened_again();
  Cursor cursor = own.tree().first();
  std::uint64_t id = 0;
  for (bool more = cursor.valid(); more; more = own.tree().next(cursor)) {
    sink(id++, own.tree().node(cursor).key);
  }
  check_unchanged(0);
}

void LmdbSet::read_one(std::uint64_t id, const RecordSink& sink) const {
  require_runs(std::array{IdRun{.first = id, .count = 1}});
  Database own = opened_again();
  Cursor cursor;
  own.tree().seek_record(cursor, id);
  const Entry entry = own.tree().entry(cursor);
  sink({.sample = id, .key = entry.key, .value = entry.value});
  check_unchanged(0);
}

std::string LmdbSet::look_at_pages() const {
  Database own = opened_again();
  return report_json(own, facts_.path);
}

std::optional<PagesReport> LmdbSet::check_pages(std::size_t most_faults,
                                                const RecordSink& sink) const {
  Database own = opened_again();
  PagesReport report = verify(own, {.max_faults = most_faults}, sink);
  report.samples = true;
  return report;
}

double LmdbSet::mean_value_bytes() const {
  Database own = opened_again();
  return inspect(own).values.mean();
}

std::string LmdbSet::info() const {
  using Json = nlohmann::ordered_json;
  std::string why = "every record is a sample";
  if (options_.plain_asked) why += ", as asked for";
  if (!options_.note.empty()) why += "; " + options_.note;
  const Json database{{"path", facts_.path},
                      {"records", facts_.entries},
                      {"stored_bytes", stored_bytes()},
                      {"convention", "plain"},
                      {"why", why},
                      {"metadata", Json::array()}};
  Json info{{"path", facts_.path},
            {"format", "lmdb"},
            {"entries", facts_.entries},
            {"convention", "plain"},
            {"why", why},
            {"order_by", "key"},
            {"parts", Json::array()},
            {"databases", Json::array({database})},
            {"stored_bytes", stored_bytes()},
            {"fingerprint", facts_.fingerprint}};
  if (!facts_.labels.empty()) info["labels"] = facts_.labels;
  return json_line(info);
}

}  // namespace forebay::lmdb
