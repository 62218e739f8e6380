#include "format/lmdb/lmdb_source.hpp"

#include <fmt/format.h>

#include "format/lmdb/baseline_source.hpp"

namespace forebay::lmdb {

void LmdbSource::seek(std::uint64_t sample) {
  skipped_ += database_.tree().seek_record(cursor_, sample);
  position_ = sample;
}

void LmdbSource::read(std::uint64_t count, const RecordSink& sink) {
  if (count > entries() || position_ > entries() - count) {
    throw Error(
        ErrorKind::usage,
        fmt::format("{} records from {} on leave the {} records", count, position_, entries()), {},
        {.file = path()});
  }
  Tree& tree = database_.tree();
  const File& file = database_.snapshot().file();
  for (const std::uint64_t end = position_ + count; position_ < end; ++position_) {
    // Moving on is left to the moment when the record is wanted: its page may be far away.
    if (cursor_.valid() && cursor_.sample + 1 == position_) {
      tree.next(cursor_);
    } else if (cursor_.sample != position_) {
      tree.seek_record(cursor_, position_);
    }
    const Entry entry = tree.entry(cursor_);
    file.check();  // key and sizes are sound
    sink({.sample = position_, .key = entry.key, .value = entry.value});
    file.check();  // and so was the value
    if (position_ + 1 == entries()) tree.check_is_last(cursor_);
  }
}

SourceCounters LmdbSource::counters() const {
  const PageCounters pages = database_.pages().counters();
  return {.requests = pages.requests,
          .bytes_requested = pages.bytes,
          .pages_visited = pages.pages,
          .records_skipped = skipped_};
}

}  // namespace forebay::lmdb

namespace forebay {

std::unique_ptr<RecordSource> open_records(const std::string& path, SourceEngine engine) {
  switch (engine) {
    case SourceEngine::liblmdb:
      return std::make_unique<lmdb::BaselineSource>(path);
    case SourceEngine::mmap:
      return std::make_unique<lmdb::LmdbSource>(lmdb::Database::open(path, Engine::mmap));
    case SourceEngine::pread:
      return std::make_unique<lmdb::LmdbSource>(lmdb::Database::open(path, Engine::pread));
  }
  throw Error(ErrorKind::usage, "unknown engine", "choose liblmdb, mmap or pread", {.file = path});
}

}  // namespace forebay
