// Roots that read files with fields, at the level of readers: where values lie, and files that
// fail.
#include "read/plan_reader.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "format/raw/open_raw.hpp"
#include "storage/failing_file.hpp"
#include "tests/support/reading_ranks.hpp"
#include "tests/support/temporary_folder.hpp"

namespace forebay {
namespace {

using test::OracleRecord;
using test::ReadingPlan;
using test::ReadingRank;
using test::TemporaryFolder;
using testing::HasSubstr;

constexpr std::uint64_t kRows = 200;
constexpr std::uint64_t kRowBytes = 1000;

/// Records of one field of bytes, or of big-endian numbers.
class Records {
 public:
  explicit Records(bool swapped) : swapped_(swapped) {
    const auto bytes = test::counting_bytes(kRows * kRowBytes);
    test::write_bytes(path(), bytes);
    for (std::uint64_t row = 0; row < kRows; ++row) {
      std::string value(reinterpret_cast<const char*>(&bytes[row * kRowBytes]), kRowBytes);
      for (std::size_t i = 0; swapped && i < value.size(); i += 2)
        std::swap(value[i], value[i + 1]);
      records_.push_back({"", value});
    }
  }

  std::string path() const { return folder_.file("records.bin"); }
  const std::vector<OracleRecord>& records() const { return records_; }

  std::shared_ptr<DataSet> open(std::shared_ptr<const File> file) const {
    return raw::open_raw(path(), {std::move(file)}, {}, "raw",
                         {.schema = swapped_ ? "x:u16[500]" : "x:u8[1000]",
                          .header_bytes = 0,
                          .record_bytes = 0,
                          .big_endian = swapped_});
  }
  std::shared_ptr<DataSet> open() const { return open(open_file(path(), Engine::pread)); }

 private:
  TemporaryFolder folder_;
  bool swapped_;
  std::vector<OracleRecord> records_;
};

/// Starts `rank` where it is a root.
void start_reading(ReadingRank& rank, const std::shared_ptr<DataSet>& source,
                   std::uint64_t private_bytes = 1 << 20) {
  if (!rank.is_root()) return;
  rank.start(source, source->facts().path, [&](const ReadingRank::Root& root) {
    PlanReaderParts parts{
        .data = source,
        .bulk = make_bulk_reader(source->whole(), Engine::pread, {.depth = 2, .stop = root.stop}),
        .gap_bytes = 0,
        .private_bytes = private_bytes,
        .threads = 2};
    return std::make_unique<PlanReader>(std::move(parts), root.list, root.stage, root.number,
                                        root.turns);
  });
}

TEST(FieldReading, BringsWhatTheFilesHold) {
  for (const bool swapped : {false, true}) {
    const Records data(swapped);
    const auto source = data.open();
    const ReadingPlan plan{.entries = kRows,
                           .batch = 12,
                           .coalesce = 3,
                           .iterations = 40,
                           .groups = test::nodes_of({2, 2}, 2)};
    run_ranks(plan.ranks(), 0, [&](const auto& comm) {
      ReadingRank rank(comm, plan);
      start_reading(rank, source);
      EXPECT_EQ(test::expect_right_batches(rank, comm->rank(), data.records()), plan.iterations);
    });
  }
}

TEST(FieldReading, ReadsAheadWithinLittleMemory) {
  const Records data(true);
  const auto source = data.open();
  const ReadingPlan plan{.entries = kRows, .batch = 10, .coalesce = 4, .iterations = 40};
  run_ranks(1, 0, [&](const auto& comm) {
    ReadingRank rank(comm, plan);
    start_reading(rank, source, 9 * kRowBytes);  // 4 of 40 samples at a time, twice
    EXPECT_EQ(test::expect_right_batches(rank, 0, data.records()), plan.iterations);
    EXPECT_GE(rank.totals().source.requests, plan.iterations * 10 / 4);
  });
}

TEST(FieldReading, AReadThatFailsEndsAllRanksWithItsPlace) {
  const Records data(false);
  const auto failing = std::make_shared<FailingFile>(open_file(data.path(), Engine::pread));
  const auto source = data.open(failing);
  failing->fail_reads_at(150 * kRowBytes);
  const ReadingPlan plan{
      .entries = kRows, .batch = 10, .iterations = 20, .groups = test::nodes_of({3})};
  run_ranks(plan.ranks(), 0, [&](const auto& comm) {
    ReadingRank rank(comm, plan);
    start_reading(rank, source);
    std::optional<Error> failure;
    EXPECT_LT(test::expect_right_batches(rank, comm->rank(), data.records(), &failure), 20U);
    ASSERT_TRUE(failure);
    EXPECT_EQ(failure->kind(), ErrorKind::io);
    EXPECT_THAT(failure->what(), HasSubstr(data.path()));
  });
}

}  // namespace
}  // namespace forebay
