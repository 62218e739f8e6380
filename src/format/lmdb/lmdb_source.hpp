// Records of an LMDB database through our own reader, in key order.
#pragma once

#include <memory>
#include <string>

#include "format/lmdb/database.hpp"
#include "format/record_source.hpp"

namespace forebay::lmdb {

/// Local, one thread at a time.
class LmdbSource final : public RecordSource {
 public:
  explicit LmdbSource(Database database) : database_(std::move(database)) {}

  const std::string& path() const override { return database_.path(); }
  std::uint64_t entries() const override { return database_.entries(); }
  std::uint64_t stored_bytes() const override { return database_.stored_bytes(); }
  DatasetFingerprint fingerprint() const override { return database_.fingerprint(); }
  void seek(std::uint64_t sample) override;
  void read(std::uint64_t count, const RecordSink& sink) override;
  void check_unchanged() override { database_.check_unchanged(); }
  SourceCounters counters() const override;

  /// Where the next record is read: the position to hand to another process.
  const Cursor& cursor() const { return cursor_; }
  /// Takes a position over, from this process or another one of the same snapshot.
  void start_at(const Cursor& cursor) {
    cursor_ = cursor;
    position_ = cursor.sample;
  }
  Database& database() { return database_; }

 private:
  Database database_;
  Cursor cursor_;               ///< on a record at or before position_, or nowhere
  std::uint64_t position_ = 0;  ///< the sample that read() hands out next
  std::uint64_t skipped_ = 0;
};

}  // namespace forebay::lmdb
