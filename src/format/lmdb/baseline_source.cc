#include "format/lmdb/baseline_source.hpp"

#include <fmt/format.h>

#include "core/read_watch.hpp"

namespace forebay::lmdb {
namespace {

constexpr int kAttempts = 20;

}  // namespace

BaselineSource::BaselineSource(const std::string& path) : path_(path) {
  DatasetPath resolved = resolve_dataset_path(path);
  if (resolved.foreign) {
    throw Error(ErrorKind::unsupported, "liblmdb maps files of the operating system only",
                "use another strategy than lmdb", {.file = path});
  }
  // Our own look at the file comes first: its errors are clearer than liblmdb's.
  resolved.name =
      Database::open(open_snapshot(resolved, Engine::pread, nullptr), resolved.name, false).name();
  try {
    begin(resolved, shared_reader_environment(resolved));
  } catch (const Error& error) {
    // All places for readers are taken: then without one, as our own reader does.
    if (error.kind() != ErrorKind::io) throw;
    begin(resolved, shared_reader_environment(resolved, Locking::none));
  }
}

void BaselineSource::begin(const DatasetPath& path,
                           const std::shared_ptr<const Environment>& environment) {
  const MDB_dbi dbi = open_for_readers(environment, path.name);
  for (int attempt = 1; !database_; ++attempt) {
    slot_.reset();  // its state may be two commits old already
    slot_ = std::make_shared<const ReaderSlot>(environment);
    try {
      database_ = std::make_unique<Database>(
          Database::open(open_snapshot(path, Engine::pread, slot_), path.name, false));
    } catch (const Error& error) {
      if (error.kind() != ErrorKind::changed || attempt == kAttempts) throw;
    }
  }
  database_->remember_records();
  check_lmdb(mdb_cursor_open(slot_->txn(), dbi, &cursor_), "mdb_cursor_open", path_);
}

BaselineSource::~BaselineSource() {
  if (cursor_ != nullptr) mdb_cursor_close(cursor_);
}

void BaselineSource::step(MDB_cursor_op operation) {
  check_lmdb(mdb_cursor_get(cursor_, &key_, &value_, operation), "mdb_cursor_get", path_);
  on_ = operation == MDB_FIRST ? 0 : on_ + 1;
  // Keys lie on the leaf, so their address tells when the cursor has come to another page.
  const auto leaf = reinterpret_cast<std::uintptr_t>(key_.mv_data) / database_->page_size();
  if (leaf == leaf_) return;
  note_mapped(to_span(key_).data());  // where liblmdb goes from there it does not tell
  leaf_ = leaf;
  ++counters_.pages_visited;
  counters_.bytes_requested += database_->page_size();
}

void BaselineSource::move_to(std::uint64_t sample) {
  if (on_ == kUnknownSample || sample < on_) step(MDB_FIRST);
  while (on_ < sample) step(MDB_NEXT);
}

void BaselineSource::seek(std::uint64_t sample) {
  if (sample >= entries()) {
    throw Error(ErrorKind::usage,
                fmt::format("record {} is not among the {} records", sample, entries()), {},
                {.file = path_});
  }
  const std::uint64_t from = on_ == kUnknownSample || sample < on_ ? 0 : on_;
  try {
    move_to(sample);
  } catch (const Error&) {
    check_unchanged();  // as in read()
    throw;
  }
  counters_.records_skipped += sample - from;
  position_ = sample;
}

void BaselineSource::count_value() {
  const auto begin = reinterpret_cast<std::uintptr_t>(value_.mv_data);
  if (value_.mv_size == 0 || begin / database_->page_size() == leaf_) return;
  const std::uint64_t pages = overflow_pages(value_.mv_size, database_->page_size());
  counters_.pages_visited += pages;
  counters_.bytes_requested += pages * database_->page_size();
}

void BaselineSource::check_unchanged() {
  slot_->environment().check();
  database_->check_unchanged();
}

bool BaselineSource::is_mapped(const MDB_val& bytes) const {
  const auto map = slot_->environment().map();
  const auto* const begin = static_cast<const std::byte*>(bytes.mv_data);
  if (map.empty() || bytes.mv_size == 0) return true;  // not known, or not looked at
  return begin >= map.data() && begin < map.data() + map.size() &&
         bytes.mv_size <= static_cast<std::size_t>(map.data() + map.size() - begin);
}

void BaselineSource::read_next(const RecordSink& sink) {
  move_to(position_);
  if (!is_mapped(key_) || !is_mapped(value_)) {
    throw Error(ErrorKind::corrupt, "liblmdb has found a record that leaves the file",
                "see 'forebay verify'", {.file = path_, .sample = position_});
  }
  count_value();
  note_mapped(to_span(value_).data());
  sink({.sample = position_, .key = to_span(key_), .value = to_span(value_)});
}

void BaselineSource::read(std::uint64_t count, const RecordSink& sink) {
  if (count > entries() || position_ > entries() - count) {
    throw Error(
        ErrorKind::usage,
        fmt::format("{} records from {} on leave the {} records", count, position_, entries()), {},
        {.file = path_});
  }
  try {
    for (const std::uint64_t end = position_ + count; position_ < end; ++position_) read_next(sink);
  } catch (const Error&) {
    // Whatever is wrong with what was found: that it could not be read, or was changed, explains
    // it.
    check_unchanged();
    throw;
  }
}

}  // namespace forebay::lmdb
