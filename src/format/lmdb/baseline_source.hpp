// The baseline: records through liblmdb, as a training framework reads them.
//
// Skipping goes record by record with MDB_NEXT, and back to the first record to go backwards, as
// Caffe's data layer does: each rank walks over the records of all others. liblmdb trusts its
// pages: what it says of them is looked at once more, so that a file that was cut, a device that
// failed or a writer that does not know of this reader is an error (liblmdb.hpp), which costs next
// to nothing.
#pragma once

#include <lmdb.h>

#include <memory>
#include <string>

#include "format/lmdb/database.hpp"
#include "format/lmdb/reader_slot.hpp"
#include "format/record_source.hpp"

namespace forebay::lmdb {

/// Local, one thread at a time.
class BaselineSource final : public RecordSource {
 public:
  explicit BaselineSource(const std::string& path);
  ~BaselineSource() override;

  const std::string& path() const override { return path_; }
  std::uint64_t entries() const override { return database_->entries(); }
  std::uint64_t stored_bytes() const override { return database_->stored_bytes(); }
  DatasetFingerprint fingerprint() const override { return database_->fingerprint(); }
  void seek(std::uint64_t sample) override;
  void read(std::uint64_t count, const RecordSink& sink) override;
  void check_unchanged() override;
  SourceCounters counters() const override { return counters_; }

 private:
  void begin(const DatasetPath& path, const std::shared_ptr<const Environment>& environment);
  void step(MDB_cursor_op operation);
  void move_to(std::uint64_t sample);
  void read_next(const RecordSink& sink);
  bool is_mapped(const MDB_val& bytes) const;
  void count_value();

  std::string path_;
  std::shared_ptr<const ReaderSlot> slot_;
  std::unique_ptr<Database> database_;  ///< headers of the same snapshot, for what liblmdb hides
  MDB_cursor* cursor_ = nullptr;
  MDB_val key_{};
  MDB_val value_{};
  std::uintptr_t leaf_ = 0;            ///< address of the leaf, in pages
  std::uint64_t on_ = kUnknownSample;  ///< the sample that the cursor is on
  std::uint64_t position_ = 0;
  SourceCounters counters_;
};

}  // namespace forebay::lmdb
