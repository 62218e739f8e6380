#include "format/convention/mapped_source.hpp"

#include <array>

namespace forebay::convention {
namespace {

/// An index that knows nothing beforehand and needs no bytes: it walks to the records.
class WalkingIndex final : public RecordIndex {
 public:
  explicit WalkingIndex(lmdb::Database& database) : database_(database) {}

  std::uint64_t entries() const override { return database_.entries(); }
  void extents(std::uint64_t, std::uint64_t, std::vector<Extent>&) override {}
  /// Spans live on while the other parts of the sample are found, as those in bytes of a caller do.
  void unpack(std::uint64_t first, std::uint64_t count, const ExtentBytes&,
              const RecordSink& sink) override {
    lmdb::Tree& tree = database_.tree();
    for (std::uint64_t record = first; record < first + count; ++record) {
      tree.seek_record(cursor_, record);
      const lmdb::Entry entry = tree.entry(cursor_);
      Kept& kept = kept_[next_++ % kept_.size()];
      kept.key.assign(entry.key.begin(), entry.key.end());
      kept.value.assign(entry.value.begin(), entry.value.end());
      sink({.sample = record, .key = kept.key, .value = kept.value});
    }
  }
  std::uint64_t memory_bytes() const override { return 0; }

 private:
  struct Kept {
    std::vector<std::byte> key;
    std::vector<std::byte> value;
  };

  lmdb::Database& database_;
  lmdb::Cursor cursor_;
  std::array<Kept, 16> kept_;  ///< as many as a sample has records in one database
  std::size_t next_ = 0;
};

class NoBytes final : public ExtentBytes {
 public:
  std::span<const std::byte> at(std::uint64_t, std::uint64_t) const override { return {}; }
};

std::vector<IndexedRecords> walking(const DatabaseSet& set) {
  std::vector<IndexedRecords> indexes;
  for (std::size_t d = 0; d < set.size(); ++d) {
    indexes.push_back({.index = std::make_unique<WalkingIndex>(set.database(d)), .begin = 0});
  }
  return indexes;
}

}  // namespace

MappedSource::MappedSource(std::shared_ptr<DatabaseSet> set)
    : set_(std::move(set)), by_walking_(set_->shared_convention(), walking(*set_)) {}

void MappedSource::read(std::uint64_t count, const RecordSink& sink) {
  // One by one: no more is kept.
  for (const std::uint64_t end = position_ + count; position_ < end; ++position_) {
    by_walking_.unpack(position_, 1, NoBytes(), sink);
  }
}

SourceCounters MappedSource::counters() const {
  SourceCounters all;
  for (std::size_t d = 0; d < set_->size(); ++d) {
    const lmdb::PageCounters pages = set_->database(d).pages().counters();
    all.requests += pages.requests;
    all.bytes_requested += pages.bytes;
    all.pages_visited += pages.pages;
  }
  return all;
}

}  // namespace forebay::convention
