#include "format/lmdb/lmdb_set.hpp"

#include <nlohmann/json.hpp>
#include <optional>

#include "core/log.hpp"
#include "format/lmdb/leaf_index.hpp"

namespace forebay::lmdb {
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
}

void LmdbSet::check_unchanged(std::uint32_t) const { database_->check_unchanged(); }

void LmdbSet::locate(Peers& peers, BulkReader& reader) {
  const std::scoped_lock lock(mutex_);
  make_index(peers, reader);
}

/// Under the mutex.
void LmdbSet::make_index(Peers& peers, BulkReader& reader) const {
  LocateOptions how = options_.locate;
  how.trust_sidecars = how.trust_sidecars && !given_up_;
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
    index->index = std::make_unique<LeafIndex>(std::move(leaves.producer), facts_of(*database_),
                                               database_->pages(),
                                               IndexMemory{.bytes = index->memory.bytes,
                                                           .reserve = index->memory.reserve,
                                                           .patience = how.patience});
  });
  index_bytes_ = bytes;
  index_ = std::move(index);
}

void LmdbSet::use_index(std::shared_ptr<RecordIndex> index) {
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

std::optional<bool> LmdbSet::give_up() const {
  const std::scoped_lock lock(mutex_);
  if (given_up_) return std::nullopt;
  given_up_ = true;
  // A scan that is wrong as well is made anew all the same: with peers, another may have erred.
  const auto index = std::exchange(index_, nullptr);
  if (!index) return true;
  const std::scoped_lock of_index(index->mutex);
  return index->index->give_up();
}

bool LmdbSet::give_up_index(const Error& mismatch) const {
  const auto first = give_up();
  if (!first) return false;
  log(*first ? LogLevel::warning : LogLevel::info,
      "the index does not fit the data and is not used: {}", mismatch.what());
  return true;
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

/// By a reader of its own: others may look samples up meanwhile.
void LmdbSet::keys(const KeySink& sink) const {
  Database own = Database::open(database_->shared_snapshot(), database_->name(), true);
  Cursor cursor = own.tree().first();
  std::uint64_t id = 0;
  for (bool more = cursor.valid(); more; more = own.tree().next(cursor)) {
    sink(id++, own.tree().node(cursor).key);
  }
  check_unchanged(0);
}

std::string LmdbSet::info() const {
  using Json = nlohmann::ordered_json;
  std::string why = "every record is a sample";
  if (options_.plain_asked) why += ", as asked for";
  const Json database{{"path", facts_.path},
                      {"records", facts_.entries},
                      {"stored_bytes", stored_bytes()},
                      {"convention", "plain"},
                      {"why", why},
                      {"metadata", Json::array()}};
  return Json{{"path", facts_.path},
              {"format", "lmdb"},
              {"entries", facts_.entries},
              {"convention", "plain"},
              {"why", why},
              {"order_by", "key"},
              {"parts", Json::array()},
              {"databases", Json::array({database})},
              {"stored_bytes", stored_bytes()},
              {"fingerprint", facts_.fingerprint}}
      .dump();
}

}  // namespace forebay::lmdb
