// Roots that read by extents, over files that fail and indexes that lie.
#pragma once

#include <chrono>
#include <memory>
#include <thread>
#include <utility>
#include <vector>

#include "format/lmdb/lmdb_set.hpp"
#include "read/plan_reader.hpp"
#include "storage/failing_file.hpp"
#include "tests/format/lmdb/index_support.hpp"
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
  std::vector<FileExtent> extents(std::uint64_t first, std::uint64_t count) const {
    const lmdb::LmdbSet data("data", lmdb::Database::open(open_file()), {});
    const IdRun run{first, count};
    return data.plan_runs({&run, 1})->extents();
  }
  /// A byte that `sample`, whose value must be large, needs and no other one does.
  std::uint64_t byte_of(std::uint64_t sample) const {
    auto needed = extents(sample, 1);
    EXPECT_EQ(needed.size(), 2U) << "a leaf and a run of pages";
    std::erase_if(needed, &FileExtent::common);
    return needed.back().offset + needed.back().length / 2;
  }

 private:
  TemporaryFolder folder_;
  std::string path_;
  std::vector<OracleRecord> records_;
};

/// The index of a tree, or one over leaves that are not as it says.
class IndexOver final : public lmdb::RecordIndex {
 public:
  IndexOver(lmdb::Database& database, const std::vector<lmdb::OwnedLeaf>& leaves)
      : index_(database, lmdb::known(leaves)) {}
  std::uint64_t entries() const override { return index_->entries(); }
  void extents(std::uint64_t first, std::uint64_t count, std::vector<FileExtent>& out) override {
    index_->extents(first, count, out);
  }
  void unpack(std::uint64_t first, std::uint64_t count, const FileBytes& bytes,
              const RecordSink& sink) override {
    index_->unpack(first, count, bytes, sink);
  }
  std::uint64_t memory_bytes() const override { return 0; }

 private:
  mutable lmdb::OwnIndex index_;
};

using Lies = std::function<std::unique_ptr<lmdb::RecordIndex>(std::unique_ptr<lmdb::RecordIndex>)>;

/// How one root reads.
struct ExtentReading {
  std::shared_ptr<const File> file;
  Engine engine = Engine::pread;
  std::uint64_t gap_bytes = 0;
  std::uint64_t request_bytes = 0;
  std::uint64_t keep_bytes = 0;
  bool in_place = false;  ///< what the page cache has of `file`, which is mapped, is not read
  /// What the reader gets in place of an index that is right.
  Lies lie = {};
  PreparePart prepare = {};
  bool may_replace = true;
  Lies second_lie = {};
  std::function<void()> before_reading = {};  ///< called when everything is open
  std::function<void()> check = {};           ///< in place of asking whether the file is unchanged
};

/// Records of a tree, with what a test says of their index.
class ToldSet final : public DataSet {
 public:
  ToldSet(const ExtentReading& how, std::shared_ptr<const File> file)
      : DataSet("data.mdb", "lmdb", {file}),
        how_(how),
        inner_("data.mdb", lmdb::Database::open(file), {}) {
    facts_ = inner_.facts();
    if (how_.lie) inner_.use_index(how_.lie(right_index()));
  }

  std::unique_ptr<const Plan> plan_runs(std::span<const IdRun> runs) const override {
    return inner_.plan_runs(runs);
  }
  void locate(Peers& peers, BulkReader& reader) override {
    if (!how_.lie) inner_.locate(peers, reader);
  }
  bool give_up_index(const Error& mismatch) const override {
    if (!how_.may_replace || !inner_.give_up_index(mismatch)) return false;
    if (how_.second_lie) inner_.use_index(how_.second_lie(right_index()));
    return true;
  }
  using DataSet::check_unchanged;
  void check_unchanged(std::uint32_t file) const override {
    how_.check ? how_.check() : inner_.check_unchanged(file);
  }
  DecodeCounters counters() const override { return inner_.counters(); }
  lmdb::Database& database() const { return inner_.database(); }

 private:
  std::unique_ptr<lmdb::RecordIndex> right_index() const {
    return std::make_unique<IndexOver>(database(), lmdb::leaves_of(database()));
  }

  ExtentReading how_;
  mutable lmdb::LmdbSet inner_;
};

/// A file as `engine` reads it: one that maps would be walked through its mapping.
inline std::shared_ptr<const File> as_read_by(Engine engine, std::shared_ptr<const File> file) {
  return engine == Engine::mmap ? file : std::make_shared<UnmappedFile>(std::move(file));
}

inline std::unique_ptr<PlanReader> make_plan_reader(const ReadingRank::Root& root,
                                                    const ExtentReading& how,
                                                    const std::shared_ptr<ToldSet>& data) {
  PlanReaderParts parts{.data = data};
  parts.bulk = make_bulk_reader(
      as_read_by(how.engine, how.file), how.engine,
      {.depth = 2, .request_bytes = how.request_bytes, .timeout = {}, .stop = root.stop});
  data->locate(no_peers(), *parts.bulk);
  parts.prepare = how.prepare;
  parts.gap_bytes = how.gap_bytes;
  parts.keep_bytes = how.keep_bytes;
  if (how.in_place) parts.mapped = {how.file};
  parts.in_place = how.in_place;
  return std::make_unique<PlanReader>(std::move(parts), root.list, root.stage, root.number,
                                      root.turns);
}

inline void start_reading(ReadingRank& rank, const ExtentReading& how) {
  const auto data = std::make_shared<ToldSet>(how, as_read_by(how.engine, how.file));
  rank.start(data, how.file->path(), [&](const ReadingRank::Root& root) {
    auto reader = make_plan_reader(root, how, data);
    if (how.before_reading) how.before_reading();
    return reader;
  });
}

/// An index that is right, until it is asked to unpack `sample`: then it hands out `wrong` records
/// and says, or has said too late, that it does not fit.
class LyingIndex final : public lmdb::RecordIndex {
 public:
  enum class Lie : std::uint8_t {
    wrong_records,  ///< hands out others, then notices
    too_little,     ///< names too few bytes, and asks for more
    error,          ///< fails with something that is not its fault
    no_extents,     ///< fails so when asked where the sample is, after a while
  };

  LyingIndex(std::unique_ptr<lmdb::RecordIndex> inner, std::uint64_t sample, Lie lie)
      : inner_(std::move(inner)), sample_(sample), lie_(lie) {}

  std::uint64_t entries() const override { return inner_->entries(); }
  void extents(std::uint64_t first, std::uint64_t count, std::vector<FileExtent>& out) override {
    const std::size_t before = out.size();
    if (lie_ == Lie::no_extents && holds(first, count)) {
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
      throw Error(ErrorKind::io, "no memory for the index");
    }
    inner_->extents(first, count, out);
    if (lie_ == Lie::too_little && holds(first, count)) out.resize(before + 1);
  }
  void unpack(std::uint64_t first, std::uint64_t count, const FileBytes& bytes,
              const RecordSink& sink) override {
    if (!holds(first, count) || lie_ == Lie::too_little) {
      return inner_->unpack(first, count, bytes, sink);
    }
    if (lie_ == Lie::error) throw Error(ErrorKind::corrupt, "the leaf is damaged");
    std::vector<FileExtent> other;
    inner_->extents(first, count, other);
    const auto garbage = bytes.at(0, other.front().offset, other.front().length);
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

  std::unique_ptr<lmdb::RecordIndex> inner_;
  std::uint64_t sample_;
  Lie lie_;
};

}  // namespace forebay::test
