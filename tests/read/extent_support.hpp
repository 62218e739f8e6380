// Roots that read by extents, over files that fail and indexes that lie.
#pragma once

#include <chrono>
#include <memory>
#include <thread>
#include <utility>
#include <vector>

#include "format/lmdb/lmdb_source.hpp"
#include "read/extent_reader.hpp"
#include "read/locate.hpp"
#include "storage/failing_file.hpp"
#include "tests/support/counted_turns.hpp"
#include "tests/support/lmdb_builder.hpp"
#include "tests/support/reading_ranks.hpp"
#include "tests/support/temporary_folder.hpp"
#include "tests/support/unmapped_file.hpp"

namespace forebay::test {

/// A database, what liblmdb reads from it, and where its records lie.
class ExtentData {
 public:
  explicit ExtentData(const LmdbBuilder& builder)
      : path_(builder.build(folder_.file("data"))), records_(read_with_liblmdb(path_)) {}

  const std::string& path() const { return path_; }
  const std::vector<OracleRecord>& records() const { return records_; }
  std::uint64_t entries() const { return records_.size(); }
  std::shared_ptr<const File> open_file() const {
    return forebay::open_file(folder_.file("data/data.mdb"), Engine::mmap);
  }

  /// What samples [first, first + count) need.
  std::vector<Extent> extents(std::uint64_t first, std::uint64_t count) const {
    lmdb::Database database = lmdb::Database::open(open_file());
    const auto bulk = make_bulk_reader(open_file(), Engine::pread, {.depth = 1});
    std::vector<Extent> extents;
    scan_alone(database, *bulk)->extents(first, count, extents);
    return extents;
  }
  /// A byte that `sample`, whose value must be large, needs and no other one does.
  std::uint64_t byte_of(std::uint64_t sample) const {
    const auto needed = extents(sample, 1);
    EXPECT_EQ(needed.size(), 2U) << "a leaf and a run of pages";
    return needed.back().offset + needed.back().length / 2;
  }

 private:
  TemporaryFolder folder_;
  std::string path_;
  std::vector<OracleRecord> records_;
};

/// How one root reads.
struct ExtentReading {
  std::shared_ptr<const File> file;
  Engine engine = Engine::pread;
  std::uint64_t gap_bytes = 0;
  std::uint64_t request_bytes = 0;
  std::uint64_t keep_bytes = 0;
  bool in_place = false;  ///< what the page cache has of `file`, which is mapped, is not read
  /// What the reader gets in place of an index that is right.
  std::function<std::unique_ptr<RecordIndex>(std::unique_ptr<RecordIndex>)> lie = {};
  PrepareIndex prepare = {};
  bool may_replace = true;
  std::function<std::unique_ptr<RecordIndex>(std::unique_ptr<RecordIndex>)> second_lie = {};
  std::function<void()> before_reading = {};  ///< called when everything is open
};

/// A file as `engine` reads it: one that maps would be walked through its mapping.
inline std::shared_ptr<const File> as_read_by(Engine engine, std::shared_ptr<const File> file) {
  return engine == Engine::mmap ? file : std::make_shared<UnmappedFile>(std::move(file));
}

inline std::unique_ptr<ExtentReader> make_extent_reader(const ReadingRank::Root& root,
                                                        const ExtentReading& how,
                                                        RecordSource& source,
                                                        lmdb::Database& database) {
  const auto honest = [](std::unique_ptr<RecordIndex> index) { return index; };
  auto bulk = make_bulk_reader(
      as_read_by(how.engine, how.file), how.engine,
      {.depth = 2, .request_bytes = how.request_bytes, .timeout = {}, .stop = root.stop});
  ExtentReaderParts parts;
  parts.source = &source;
  parts.index = (how.lie ? how.lie : honest)(scan_alone(database, *bulk));
  parts.prepare = how.prepare;
  if (how.may_replace) {
    parts.replace = [&database, &reader = *bulk, make = how.second_lie ? how.second_lie : honest] {
      return make(scan_alone(database, reader));
    };
  }
  parts.bulk = std::move(bulk);
  parts.gap_bytes = how.gap_bytes;
  parts.keep_bytes = how.keep_bytes;
  if (how.in_place) parts.mapped = how.file;
  return std::make_unique<ExtentReader>(std::move(parts), root.list, root.stage, root.number,
                                        root.turns);
}

inline void start_reading(ReadingRank& rank, const ExtentReading& how,
                          std::unique_ptr<RecordSource> source, lmdb::Database& database) {
  RecordSource& records = *source;
  rank.start(std::move(source), [&](const ReadingRank::Root& root) {
    auto reader = make_extent_reader(root, how, records, database);
    if (how.before_reading) how.before_reading();
    return reader;
  });
}

inline void start_reading(ReadingRank& rank, const ExtentReading& how) {
  auto source =
      std::make_unique<lmdb::LmdbSource>(lmdb::Database::open(as_read_by(how.engine, how.file)));
  lmdb::Database& database = source->database();
  start_reading(rank, how, std::move(source), database);
}

/// An index that is right, until it is asked to unpack `sample`: then it hands out `wrong` records
/// and says, or has said too late, that it does not fit.
class LyingIndex final : public RecordIndex {
 public:
  enum class Lie : std::uint8_t {
    wrong_records,  ///< hands out others, then notices
    too_little,     ///< names too few bytes, and asks for more
    error,          ///< fails with something that is not its fault
    no_extents,     ///< fails so when asked where the sample is, after a while
  };

  LyingIndex(std::unique_ptr<RecordIndex> inner, std::uint64_t sample, Lie lie)
      : inner_(std::move(inner)), sample_(sample), lie_(lie) {}

  std::uint64_t entries() const override { return inner_->entries(); }
  void extents(std::uint64_t first, std::uint64_t count, std::vector<Extent>& out) override {
    const std::size_t before = out.size();
    if (lie_ == Lie::no_extents && holds(first, count)) {
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
      throw Error(ErrorKind::io, "no memory for the index");
    }
    inner_->extents(first, count, out);
    if (lie_ == Lie::too_little && holds(first, count)) out.resize(before + 1);
  }
  void unpack(std::uint64_t first, std::uint64_t count, const ExtentBytes& bytes,
              const RecordSink& sink) override {
    if (!holds(first, count) || lie_ == Lie::too_little) {
      return inner_->unpack(first, count, bytes, sink);
    }
    if (lie_ == Lie::error) throw Error(ErrorKind::corrupt, "the leaf is damaged");
    std::vector<Extent> other;
    inner_->extents(first, count, other);
    const auto garbage = bytes.at(other.front().offset, other.front().length);
    for (std::uint64_t i = 0; i < count; ++i) {
      sink({.sample = first + i, .key = garbage.first(8), .value = garbage});
    }
    throw IndexMismatch(ErrorKind::corrupt, "the index has told a lie");
  }
  std::uint64_t memory_bytes() const override { return inner_->memory_bytes(); }

 private:
  bool holds(std::uint64_t first, std::uint64_t count) const {
    return sample_ >= first && sample_ - first < count;
  }

  std::unique_ptr<RecordIndex> inner_;
  std::uint64_t sample_;
  Lie lie_;
};

}  // namespace forebay::test
