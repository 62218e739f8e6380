// Reading in few large requests: the stage holds what liblmdb reads, also after the index has lied;
// storage that fails ends in an error that names the place, with every turn given back.
#include "read/plan_reader.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <random>
#include <thread>

#include "forebay/log.hpp"
#include "storage/page_cache.hpp"
#include "tests/format/lmdb/index_support.hpp"
#include "tests/read/extent_support.hpp"
#include "tests/support/scale.hpp"
#include "tests/support/stalled_file.hpp"

namespace forebay {
namespace {

using namespace std::chrono_literals;
using test::expect_right_batches;
using test::ExtentData;
using test::ExtentReading;
using test::LmdbBuilder;
using test::LyingIndex;
using test::nodes_of;
using test::ReadingPlan;
using test::ReadingRank;
using testing::HasSubstr;

/// 300 records; every third one is large.
LmdbBuilder some_records() { return LmdbBuilder().random_order(300).value_sizes({50, 700, 9000}); }
constexpr std::uint64_t kLarge = 152;  ///< a sample with a value of 9000 bytes, in the third window

/// One rank that reads for itself.
class PlanReaderTest : public ::testing::Test {
 protected:
  PlanReaderTest() {
    plan_ = {.entries = data_.entries(), .batch = 10, .coalesce = 7, .iterations = 65};
    how_.file = failing_;
  }

  /// Reads to the end, or to the error.
  void read() {
    ReadingRank rank(self_communicator(), plan_);
    rank.take_turns_by(std::make_unique<test::CountedTurns>(turns_));
    start_reading(rank, how_);
    came_ = expect_right_batches(rank, 0, data_.records(), &failure_);
    rank.close();
    EXPECT_EQ(turns_->taken, turns_->given_back);
  }

  /// Bytes that a run reads which may keep so many of them.
  std::uint64_t requested(std::uint64_t keep_bytes) {
    how_.keep_bytes = keep_bytes;
    ReadingRank rank(self_communicator(), plan_);
    start_reading(rank, how_);
    EXPECT_EQ(expect_right_batches(rank, 0, data_.records()), plan_.iterations);
    return rank.totals().source.bytes_requested;
  }

  /// Once window w is read, window w - 2 has been taken; who takes less may hear of the failure
  /// first.
  void expect_failure(ErrorKind kind, const std::string& words) {
    read();
    ASSERT_TRUE(failure_) << "all batches came";
    EXPECT_EQ(failure_->kind(), kind) << failure_->what();
    EXPECT_THAT(failure_->what(), HasSubstr(words));
    EXPECT_EQ(failure_->where().rank, 0);
    EXPECT_LE(came_, batches_before(kLarge));
    EXPECT_GE(came_ + plan_.coalesce, batches_before(kLarge));
    EXPECT_TRUE(turns_->left);
  }

  /// Those of the windows before the one that holds `sample` first.
  std::uint64_t batches_before(std::uint64_t sample) const {
    const std::uint64_t window = plan_.batch * plan_.coalesce;
    return sample / window * plan_.coalesce;
  }

  int parts() const {
    const std::uint64_t windows = (plan_.iterations + plan_.coalesce - 1) / plan_.coalesce;
    return static_cast<int>(windows) + 1;  // the first one comes in two
  }

  ExtentData data_{some_records()};
  std::shared_ptr<FailingFile> failing_ = std::make_shared<FailingFile>(data_.open_file());
  ReadingPlan plan_;
  ExtentReading how_;
  std::shared_ptr<test::TurnCounts> turns_ = std::make_shared<test::TurnCounts>();
  std::optional<Error> failure_;
  std::uint64_t came_ = 0;
};

TEST(PlanReader, TheStageHoldsWhatLiblmdbReads) {
  const ExtentData all[] = {
      ExtentData(some_records()),
      ExtentData(LmdbBuilder().random_order(200).values(0, 6000).delete_every(3).commit_every(10)),
      ExtentData(LmdbBuilder().in_order(1).values(5000))};
  std::mt19937_64 random(2);
  const auto pick = [&random](std::uint64_t least, std::uint64_t most) {
    return std::uniform_int_distribution<std::uint64_t>(least, most)(random);
  };
  for (int round = 0; round < test::random_cases(25); ++round) {
    const ExtentData& data = all[pick(0, 2)];
    ReadingPlan plan{.entries = data.entries(),
                     .batch = pick(8, 40),
                     .coalesce = pick(1, 9),
                     .iterations = pick(1, 30)};
    std::vector<int> nodes(pick(1, 3));
    for (int& ranks : nodes) ranks = static_cast<int>(pick(1, 3));
    plan.groups = nodes_of(nodes, static_cast<int>(pick(1, 2)));
    plan.buffers = static_cast<int>(pick(1, 3));
    const ExtentReading how{.file = data.open_file(),
                            .engine = pick(0, 1) == 0 ? Engine::pread : Engine::mmap,
                            .gap_bytes = pick(0, 1) * 65536,
                            .request_bytes = pick(0, 1) * 8192,
                            .keep_bytes = pick(0, 2) * 20'000,
                            .in_place = plan.ranks() == 1 && pick(0, 1) == 0};
    run_ranks(plan.ranks(), 0, [&](const auto& comm) {
      ReadingRank rank(comm, plan);
      if (rank.is_root()) start_reading(rank, how);
      EXPECT_EQ(expect_right_batches(rank, comm->rank(), data.records()), plan.iterations);
      comm->barrier();
    });
  }
}

TEST_F(PlanReaderTest, WhatIsInMemoryIsNotRead) {
  how_.file = data_.open_file();
  std::vector<std::byte> all(how_.file->size());
  how_.file->read(0, all);
  if (!in_page_cache(*how_.file, 0, all.size())) GTEST_SKIP() << "the system does not tell";
  const std::uint64_t read = requested(0);
  how_.in_place = true;
  EXPECT_LT(requested(0), read / 4) << "to find out where records are";
}

TEST_F(PlanReaderTest, AFaultOfWhatIsUsedInPlaceIsAnError) {
  how_.file = data_.open_file();
  how_.in_place = true;
  how_.before_reading = [&] {
    std::filesystem::resize_file(how_.file->path(), data_.byte_of(kLarge) / 4096 * 4096);
  };
  read();
  ASSERT_TRUE(failure_);
  EXPECT_THAT(failure_->kind(), testing::AnyOf(ErrorKind::io, ErrorKind::changed));
}

TEST_F(PlanReaderTest, LeavesThatAreKeptAreReadOnce) {
  plan_.iterations = 5 * data_.entries() / plan_.batch;
  const std::uint64_t leaf = 4096, leaves = 30;  // at least
  EXPECT_LE(requested(1 << 20) + 4 * leaves * leaf, requested(0));
}

/// Parts are planned while the one before is being read, and mostly share a leaf with it.
TEST_F(PlanReaderTest, ALeafThatIsOnItsWayIsNotReadAgain) {
  plan_.iterations = data_.entries() / plan_.batch;
  const auto bytes = [&](std::uint64_t first, std::uint64_t end) {
    auto extents = data_.extents(first, end - first);
    return bytes_of(place_extents(extents, 0));
  };
  const std::uint64_t end = plan_.iterations * plan_.batch;
  const std::uint64_t window = plan_.batch * plan_.coalesce;
  std::uint64_t by_parts = bytes(0, plan_.batch);
  for (std::uint64_t first = plan_.batch; first < end;) {
    const std::uint64_t next = std::min((first / window + 1) * window, end);
    by_parts += bytes(first, next);
    first = next;
  }
  ASSERT_GT(by_parts, bytes(0, end)) << "some leaf serves two parts";
  EXPECT_EQ(requested(0) - requested(1 << 20), by_parts - bytes(0, end));
}

/// Three ranks, each a root; the last one has no part in what is read first.
TEST(PlanReader, ARootTakesItsTurnsAlsoWhereItHasNothingToRead) {
  const ExtentData data(some_records());
  ReadingPlan plan{.entries = data.entries(), .batch = 4, .coalesce = 3, .iterations = 30};
  plan.groups = nodes_of({3}, 3);
  run_ranks(3, 0, [&](const auto& comm) {
    const auto turns = std::make_shared<test::TurnCounts>();
    ReadingRank rank(comm, plan);
    rank.take_turns_by(std::make_unique<test::CountedTurns>(turns));
    start_reading(rank, {.file = data.open_file()});
    EXPECT_EQ(expect_right_batches(rank, comm->rank(), data.records()), plan.iterations);
    comm->barrier();
    rank.close();
    EXPECT_EQ(turns->taken, 11);
    EXPECT_EQ(turns->given_back, 11);
  });
}

TEST_F(PlanReaderTest, TakesOneTurnForEachPart) {
  read();
  EXPECT_EQ(came_, plan_.iterations);
  EXPECT_EQ(turns_->taken, parts());
}

TEST_F(PlanReaderTest, ADeviceErrorNamesFileAndOffset) {
  const std::uint64_t byte = data_.byte_of(kLarge);
  how_.before_reading = [&] { failing_->fail_reads_at(byte); };
  expect_failure(ErrorKind::io, "data.mdb");
  EXPECT_EQ(failure_->where().offset, byte);
}

TEST_F(PlanReaderTest, AShortFileGivesNoWrongSample) {
  const std::uint64_t byte = data_.byte_of(kLarge);
  how_.before_reading = [&] { failing_->end_reads_at(byte); };
  read();
  ASSERT_TRUE(failure_);
  EXPECT_EQ(failure_->kind(), ErrorKind::io);
  EXPECT_THAT(failure_->what(), HasSubstr("ends at " + std::to_string(byte)));
  EXPECT_LE(came_, batches_before(kLarge));
}

TEST_F(PlanReaderTest, AFileThatIsCutIsNoticedBeforeItsSamplesAreDelivered) {
  for (const Engine engine : {Engine::pread, Engine::mmap}) {
    how_.engine = engine;
    failing_ = std::make_shared<FailingFile>(data_.open_file());
    how_.file = failing_;
    how_.before_reading = [&] { failing_->cut_to(data_.byte_of(kLarge)); };
    failure_.reset();
    read();
    ASSERT_TRUE(failure_);
    EXPECT_THAT(failure_->kind(), testing::AnyOf(ErrorKind::io, ErrorKind::changed));
    EXPECT_EQ(came_, 0U) << "the first window is not trusted either";
  }
}

TEST_F(PlanReaderTest, AFaultOfTheMappingIsAnError) {
  how_.engine = Engine::mmap;
  const std::uint64_t byte = data_.byte_of(kLarge);
  how_.before_reading = [&] { failing_->fault_map_at(byte); };
  read();
  ASSERT_TRUE(failure_);
  EXPECT_EQ(failure_->kind(), ErrorKind::io);
  EXPECT_EQ(failure_->where().offset, byte);
}

TEST_F(PlanReaderTest, AReadThatGetsNoAnswerEndsWithTheLoader) {
  const auto stalled = std::make_shared<test::StalledFile>(failing_, data_.byte_of(kLarge));
  how_.file = stalled;
  ReadingRank rank(self_communicator(), plan_);
  rank.take_turns_by(std::make_unique<test::CountedTurns>(turns_));
  start_reading(rank, how_);
  EXPECT_EQ(expect_right_batches(rank, 0, data_.records(), nullptr, 14), 14U);
  std::jthread late([&] {
    std::this_thread::sleep_for(300ms);
    stalled->release();  // within the grace: nothing is left behind
  });
  const double begin = now_seconds();
  rank.close();
  EXPECT_LT(now_seconds() - begin, 3);
  EXPECT_FALSE(rank.failed()) << "who closes its loader has not failed";
  EXPECT_EQ(turns_->taken, turns_->given_back);
}

// What is started refers to memory of the reader (the thread sanitizer would notice).
TEST_F(PlanReaderTest, MayBeDroppedWhileTheNextPartIsOnItsWay) {
  ReadingRank rank(self_communicator(), plan_);
  rank.take_turns_by(std::make_unique<test::CountedTurns>(turns_));
  const auto data =
      std::make_shared<test::ToldSet>(how_, test::as_read_by(Engine::pread, failing_));
  rank.start(data, data_.path(), [&](const ReadingRank::Root& root) {
    const auto dropped = test::make_plan_reader(root, how_, data);
    dropped->read({.window = 0, .iterations = plan_.coalesce},
                  WindowPart{.window = 1, .iterations = plan_.coalesce});
    std::this_thread::sleep_for(20ms);
    return test::make_plan_reader(root, how_, data);
  });
  EXPECT_EQ(expect_right_batches(rank, 0, data_.records()), plan_.iterations);
}

TEST_F(PlanReaderTest, FaultsAnywhereGiveNoWrongSample) {
  std::mt19937_64 random(11);
  int failed = 0;
  for (int round = 0; round < test::random_cases(20); ++round) {
    failing_ = std::make_shared<FailingFile>(data_.open_file());
    how_.file = failing_;
    how_.engine = round % 2 == 0 ? Engine::pread : Engine::mmap;
    how_.gap_bytes = random() % 2 * 65536;
    turns_->unlimited = random() % 2 == 0;
    const std::uint64_t byte = random() % failing_->size();
    const auto fault = random() % 3;
    how_.before_reading = [&] {
      if (how_.engine == Engine::mmap) return failing_->fault_map_at(byte);
      if (fault == 0) failing_->fail_reads_at(byte);
      if (fault == 1) failing_->end_reads_at(byte);
      if (fault == 2) failing_->cut_to(byte);
    };
    failure_.reset();
    read();
    EXPECT_TRUE(failure_ || came_ == plan_.iterations);
    failed += failure_ ? 1 : 0;
  }
  EXPECT_GT(failed, 5);
}

/// What the log says of indexes that are given up.
class GivenUp {
 public:
  GivenUp() {
    set_log_hook([this](LogLevel level, std::string_view message) {
      if (level == LogLevel::warning && message.find("does not fit") != std::string_view::npos)
        ++warnings_;
    });
  }
  ~GivenUp() { set_log_hook({}); }
  int warnings() const { return warnings_; }

 private:
  std::atomic<int> warnings_ = 0;
};

/// How far the part after the one that is unpacked has come meanwhile.
enum class NextPart : std::uint8_t {
  waits,    ///< others prepare the index
  located,  ///< turns have to be waited for
  started,
};

class AnIndexThatLies : public PlanReaderTest,
                        public ::testing::WithParamInterface<LyingIndex::Lie> {
 protected:
  /// About `sample`.
  static auto lie_about(std::uint64_t sample, LyingIndex::Lie lie) {
    return [sample, lie](std::unique_ptr<lmdb::RecordIndex> index) {
      return std::make_unique<LyingIndex>(std::move(index), sample, lie);
    };
  }
};

TEST_P(AnIndexThatLies, IsReplacedAndTheDataAreRight) {
  how_.keep_bytes = 1 << 20;
  // The first part, the second one, the first sample of a window, and somewhere in the last one.
  for (const std::uint64_t sample :
       {std::uint64_t{2}, std::uint64_t{62}, std::uint64_t{140}, std::uint64_t{209}}) {
    for (const NextPart next : {NextPart::waits, NextPart::located, NextPart::started}) {
      const GivenUp log;
      int prepared = 0;
      how_.lie = lie_about(sample, GetParam());
      how_.prepare = nullptr;
      if (next == NextPart::waits) how_.prepare = [&](const WindowPart&) { ++prepared; };
      turns_ = std::make_shared<test::TurnCounts>();
      turns_->unlimited = next != NextPart::located;
      read();
      EXPECT_FALSE(failure_) << failure_->what();
      EXPECT_EQ(came_, plan_.iterations);
      EXPECT_EQ(log.warnings(), 1);
      EXPECT_EQ(turns_->taken, parts()) << "what is read twice has one turn";
      EXPECT_EQ(prepared, next == NextPart::waits ? parts() : 0);
    }
  }
}

TEST_P(AnIndexThatLies, GivesItsPartOfTheStageBack) {
  const std::uint64_t window = plan_.batch * plan_.coalesce;
  plan_.buffers = 1;
  plan_.stage_bytes = 0;
  for (std::uint64_t first = 0; first < data_.entries(); first += window) {
    std::vector<FileExtent> extents =
        data_.extents(first, std::min(window, data_.entries() - first));
    plan_.stage_bytes = std::max(plan_.stage_bytes, bytes_of(place_extents(extents, 0)));
  }
  plan_.stage_bytes += plan_.stage_bytes / 4;  // a window may reach over the end of the data set
  how_.lie = lie_about(kLarge, GetParam());
  read();
  EXPECT_FALSE(failure_) << failure_->what();
  EXPECT_EQ(came_, plan_.iterations);
}

TEST_P(AnIndexThatLies, IsAnErrorWhereThereIsNoOtherOne) {
  how_.lie = lie_about(kLarge, GetParam());
  how_.may_replace = false;
  expect_failure(ErrorKind::corrupt, "index");
}

TEST_P(AnIndexThatLies, IsReplacedOnlyOnce) {
  how_.lie = lie_about(2, GetParam());
  how_.second_lie = lie_about(kLarge, GetParam());
  expect_failure(ErrorKind::corrupt, "index");
}

INSTANTIATE_TEST_SUITE_P(Lies, AnIndexThatLies,
                         ::testing::Values(LyingIndex::Lie::wrong_records,
                                           LyingIndex::Lie::too_little),
                         [](const auto& tested) {
                           return tested.param == LyingIndex::Lie::too_little ? "too_little"
                                                                              : "wrong_records";
                         });

TEST_F(PlanReaderTest, DamageIsNotBlamedOnTheIndex) {
  how_.lie = [](std::unique_ptr<lmdb::RecordIndex> index) {
    return std::make_unique<LyingIndex>(std::move(index), kLarge, LyingIndex::Lie::error);
  };
  expect_failure(ErrorKind::corrupt, "the leaf is damaged");
}

// What is on its way then refers to memory of the part (the thread sanitizer would notice).
TEST_F(PlanReaderTest, AnIndexMayFailForTheNextPart) {
  how_.lie = [](std::unique_ptr<lmdb::RecordIndex> index) {
    return std::make_unique<LyingIndex>(std::move(index), kLarge, LyingIndex::Lie::no_extents);
  };
  expect_failure(ErrorKind::io, "no memory for the index");
}

TEST_F(PlanReaderTest, AWriterExplainsWhatLooksLikeALie) {
  const GivenUp log;
  how_.check = [] { throw Error(ErrorKind::changed, "a writer was here"); };
  how_.lie = [](std::unique_ptr<lmdb::RecordIndex> index) {
    return std::make_unique<LyingIndex>(std::move(index), 2, LyingIndex::Lie::wrong_records);
  };
  read();
  ASSERT_TRUE(failure_);
  EXPECT_EQ(failure_->kind(), ErrorKind::changed);
  EXPECT_EQ(log.warnings(), 0);
}

/// (Two whole leaves of one shape in each other's place would need a producer that knows keys: see
/// the tests of sidecars.)
TEST_F(PlanReaderTest, LeavesThatAreOtherwiseAreFoundOut) {
  lmdb::Database database = lmdb::Database::open(failing_);
  const auto right = lmdb::leaves_of(database);
  ASSERT_GT(right.size(), 10U);
  std::mt19937_64 random(3);
  for (int round = 0; round < test::random_cases(10); ++round) {
    auto leaves = right;
    const std::size_t one = random() % leaves.size();
    const std::size_t other = (one + 1 + random() % (leaves.size() - 1)) % leaves.size();
    if (round % 2 == 0) {
      std::swap(leaves[one].page, leaves[other].page);
    } else {
      ++leaves[one].records;
      --leaves[other].records;
      leaves[other].runs.clear();
    }
    const GivenUp log;
    how_.lie = [&](const std::unique_ptr<lmdb::RecordIndex>&) {
      return std::make_unique<test::IndexOver>(database, leaves);
    };
    read();
    EXPECT_FALSE(failure_) << failure_->what();
    EXPECT_EQ(came_, plan_.iterations);
    EXPECT_EQ(log.warnings(), 1);
  }
}

}  // namespace
}  // namespace forebay
