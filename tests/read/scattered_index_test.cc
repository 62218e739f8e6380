// One root that seeks for all: what it says is checked, and the others go on without it.
#include "read/walk/scattered_index.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>
#include <set>

#include "tests/format/lmdb/index_support.hpp"
#include "tests/read/extent_support.hpp"
#include "tests/support/error_from.hpp"
#include "tests/support/scale.hpp"

namespace forebay {
namespace {

using namespace std::chrono_literals;
using test::error_from;
using test::expect_right_batches;
using test::ExtentData;
using test::ExtentReading;
using test::LmdbBuilder;
using test::LyingIndex;
using test::nodes_of;
using test::ReadingPlan;
using test::ReadingRank;
using testing::HasSubstr;

LmdbBuilder some_records() { return LmdbBuilder().random_order(300).value_sizes({50, 700, 9000}); }

/// Root 1 of two, which believes what the test says in place of root 0.
class ScatteredIndexTest : public ::testing::Test {
 protected:
  static constexpr WindowPart kPart{.window = 1, .phase = Phase::whole, .iterations = 5};

  using Roots = const std::shared_ptr<Communicator>&;
  using Sender = std::function<void(Roots roots, std::vector<std::byte> right)>;

  /// Runs `sender` as root 0, with the bytes that a real one would send for kPart, and `receiver`
  /// as root 1.
  void with_roots(const Sender& sender, const std::function<void(ScatteredIndex& index)>& receiver,
                  std::chrono::milliseconds patience = 20s, const GiveUp& give_up = {}) {
    run_ranks(2, 0, [&](const auto& comm) {
      const auto roots = comm->split(0, comm->rank());
      lmdb::Database database = lmdb::Database::open(data_.path(), Engine::mmap);
      if (roots->rank() == 0) {
        lmdb::Cursor cursor;
        sender(roots, encode(0, walk_pieces(database, cursor, ranges())));
      } else {
        ScatteredIndex index(database, map_, roots, patience, give_up);
        receiver(index);
      }
      comm->barrier();
    });
  }

  /// The samples of root 1 in kPart.
  std::vector<SampleRange> ranges() const {
    return sample_ranges(map_->order(), map_->pieces(1, kPart));
  }

  /// All records of the part, through the index.
  std::vector<test::OracleRecord> read(ScatteredIndex& index) const {
    std::vector<test::OracleRecord> records;
    for (const SampleRange& range : ranges()) {
      for (const auto& record :
           lmdb::read_range(index, *data_.open_file(), range.first, range.count)) {
        records.push_back(record);
      }
    }
    return records;
  }

  std::vector<test::OracleRecord> right_records() const {
    std::vector<test::OracleRecord> records;
    for (const SampleRange& range : ranges()) {
      for (std::uint64_t i = 0; i < range.count; ++i) {
        records.push_back(data_.records()[range.first + i]);
      }
    }
    return records;
  }

  ExtentData data_{some_records()};
  std::shared_ptr<const RootMap> map_ =
      std::make_shared<const RootMap>(StridedOrder(data_.entries(), 2, 20, 5), nodes_of({1, 1}));
};

TEST_F(ScatteredIndexTest, LeadsToTheRecordsOfThePart) {
  with_roots([](Roots roots, const auto& right) { roots->send(1, right); },
             [&](ScatteredIndex& index) {
               index.prepare(kPart);
               EXPECT_EQ(read(index), right_records());
               std::vector<FileExtent> extents;
               EXPECT_THROW(index.extents(0, 1, extents), IndexMismatch) << "another's sample";
             });
}

TEST_F(ScatteredIndexTest, ARootThatLeavesLeavesTheOthersToSeekForThemselves) {
  with_roots(
      [](Roots roots, const auto& right) {
        roots->send(1, right);
        ExtentLink(roots, 1s).leave();
      },
      [&](ScatteredIndex& index) {
        for (int round = 0; round < 4; ++round) {
          index.prepare(kPart);
          EXPECT_EQ(read(index), right_records()) << "round " << round;
        }
      });
}

TEST_F(ScatteredIndexTest, AWaitForTheRootThatSeeksEnds) {
  with_roots([](Roots, const auto&) {},
             [&](ScatteredIndex& index) {
               const Error error = error_from([&] { index.prepare(kPart); });
               EXPECT_EQ(error.kind(), ErrorKind::communication);
               EXPECT_THAT(error.what(), HasSubstr("root 0"));
             },
             50ms);
  with_roots([](Roots, const auto&) {},
             [&](ScatteredIndex& index) {
               EXPECT_EQ(error_from([&] { index.prepare(kPart); }).kind(), ErrorKind::cancelled);
             },
             20s, [] { return true; });
}

TEST_F(ScatteredIndexTest, MessagesOutOfStepAreRefused) {
  with_roots(
      [this](Roots roots, const auto&) {
        lmdb::Database database = lmdb::Database::open(data_.path(), Engine::mmap);
        lmdb::Cursor cursor;
        roots->send(1, encode(7, walk_pieces(database, cursor, ranges())));
      },
      [&](ScatteredIndex& index) {
        const Error error = error_from([&] { index.prepare(kPart); });
        EXPECT_EQ(error.kind(), ErrorKind::communication);
        EXPECT_THAT(error.what(), HasSubstr("window 7 instead of 0"));
      });
}

TEST_F(ScatteredIndexTest, SamplesThatWereNotLocatedAreMissed) {
  with_roots(
      [this](Roots roots, const auto&) {
        lmdb::Database database = lmdb::Database::open(data_.path(), Engine::mmap);
        lmdb::Cursor cursor;
        auto fewer = ranges();
        fewer.back().count -= 1;
        roots->send(1, encode(0, walk_pieces(database, cursor, fewer)));
      },
      [&](ScatteredIndex& index) {
        index.prepare(kPart);
        EXPECT_THROW(read(index), IndexMismatch);
      });
}

TEST_F(ScatteredIndexTest, LeavesWithOtherCountsDoNotFit) {
  for (const int wrong : {-1, 1}) {
    with_roots(
        [&](Roots roots, const auto&) {
          lmdb::Database database = lmdb::Database::open(data_.path(), Engine::mmap);
          lmdb::Cursor cursor;
          auto pieces = walk_pieces(database, cursor, ranges());
          auto& leaves = pieces.front().leaves;
          ASSERT_GT(leaves.size(), 3U);
          leaves[1].records += static_cast<std::uint32_t>(wrong);
          if (wrong < 0) leaves[1].runs.clear();
          roots->send(1, encode(0, pieces));
        },
        [&](ScatteredIndex& index) {
          EXPECT_THROW(
              {
                index.prepare(kPart);
                read(index);
              },
              Error);
        });
  }
}

/// Whatever arrives, there is an Error, or records that the file really has.
TEST_F(ScatteredIndexTest, DamagedMessagesNeverDoHarm) {
  std::set<std::pair<std::string, std::string>> known;
  for (const auto& record : data_.records()) known.insert({record.key, record.value});
  const int rounds = test::random_cases(1500);
  int refused = 0;
  run_ranks(2, 0, [&](const auto& comm) {
    const auto roots = comm->split(0, comm->rank());
    lmdb::Database database = lmdb::Database::open(data_.path(), Engine::mmap);
    if (roots->rank() == 0) {
      std::mt19937_64 random(4);
      lmdb::Cursor cursor;
      const auto right = encode(0, walk_pieces(database, cursor, ranges()));
      for (int round = 0; round < rounds; ++round) {
        auto bytes = right;
        for (std::uint64_t n = 1 + random() % 4; n > 0; --n) {
          bytes[random() % bytes.size()] = static_cast<std::byte>(random());
        }
        if (random() % 4 == 0) bytes.resize(random() % bytes.size());
        roots->send(1, bytes);
      }
    } else {
      for (int round = 0; round < rounds; ++round) {
        ScatteredIndex index(database, map_, roots, 20s, {});
        try {
          index.prepare(kPart);
          for (const auto& record : read(index)) {
            EXPECT_TRUE(known.contains({record.key, record.value}));
          }
        } catch (const Error&) {
          ++refused;
        }
      }
    }
    comm->barrier();
  });
  EXPECT_GT(refused, rounds / 2);
}

/// Roots whose indexes are filled by root 0, as a Loader makes them.
void start_scattered(ReadingRank& rank, const ExtentReading& how,
                     std::chrono::milliseconds patience) {
  const auto data = std::make_shared<lmdb::LmdbSet>(
      "data.mdb", lmdb::Database::open(test::as_read_by(how.engine, how.file)),
      lmdb::LmdbSetOptions{});
  rank.start(data, how.file->path(), [&](const ReadingRank::Root& root) {
    auto index = std::make_unique<ScatteredIndex>(data->database(), root.map, root.roots, patience,
                                                  root.give_up);
    ScatteredIndex& scattered = *index;
    std::shared_ptr<lmdb::RecordIndex> told =
        how.lie ? how.lie(std::move(index)) : std::move(index);
    data->use_index(told);
    PlanReaderParts parts{.data = data};
    parts.prepare = [told, &scattered](const WindowPart& part) { scattered.prepare(part); };
    parts.leave = [told, &scattered] { scattered.leave(); };
    parts.bulk = make_bulk_reader(test::as_read_by(how.engine, how.file), how.engine,
                                  {.depth = 2, .timeout = {}, .stop = root.stop});
    if (how.before_reading) how.before_reading();
    return std::make_unique<PlanReader>(std::move(parts), root.list, root.stage, root.number,
                                        root.turns);
  });
}

/// Three nodes with unequal work.
class ScatteredRoots : public ::testing::Test {
 protected:
  ScatteredRoots() {
    plan_ = {.entries = data_.entries(), .batch = 17, .coalesce = 4, .iterations = 40};
    plan_.groups = nodes_of({3, 1, 2});
  }

  /// How root `number` reads.
  using How = std::function<ExtentReading(int rank)>;

  void expect_all_right(const How& how, int leaving = -1, std::uint64_t batches = 9) {
    run_ranks(plan_.ranks(), 0, [&](const auto& comm) {
      const int me = comm->rank();
      ReadingRank rank(comm, plan_);
      if (rank.is_root()) start_scattered(rank, how(me), 20s);
      const auto most = me == leaving ? batches : plan_.iterations;
      EXPECT_EQ(expect_right_batches(rank, me, data_.records(), nullptr, most), most);
      rank.close();
      comm->barrier();
    });
  }

  ExtentReading plain() const { return {.file = data_.open_file()}; }

  ExtentData data_{some_records()};
  ReadingPlan plan_;
};

TEST_F(ScatteredRoots, ReadTheRightRecords) {
  expect_all_right([&](int) { return plain(); });
}

TEST_F(ScatteredRoots, GoOnWithoutTheRootThatSeeks) {
  plan_.groups = nodes_of({1, 3, 2});  // nobody else depends on rank 0
  expect_all_right([&](int) { return plain(); }, 0);
}

TEST_F(ScatteredRoots, GoOnWithoutAnotherRoot) {
  expect_all_right([&](int) { return plain(); }, 3);
}

TEST_F(ScatteredRoots, HearFromARootThatReadsByAnotherIndexItself) {
  for (const int liar : {0, 3, 4}) {
    expect_all_right([&](int rank) {
      ExtentReading how = plain();
      if (rank != liar) return how;
      how.lie = [](std::unique_ptr<lmdb::RecordIndex> index) {
        return std::make_unique<LyingIndex>(std::move(index), 5, LyingIndex::Lie::wrong_records);
      };
      return how;
    });
  }
}

TEST_F(ScatteredRoots, EndWithTheFirstFailureOfAny) {
  plan_.iterations = 1'000'000;  // nobody comes to the end before he hears of it
  const StridedOrder order(data_.entries(), plan_.ranks(), plan_.batch, plan_.coalesce);
  for (const int failing : {0, 3, 4}) {
    std::uint64_t sample = order.sample(order.run(failing, 20).first);
    for (std::uint64_t i = 20; data_.records()[sample].value.size() < 9000; ++i) {
      sample = order.sample(order.run(failing, i).first);
    }
    std::set<std::string> messages;
    std::mutex mutex;
    const double begin = now_seconds();
    run_ranks(plan_.ranks(), 0, [&](const auto& comm) {
      ReadingRank rank(comm, plan_);
      if (rank.is_root()) {
        ExtentReading how = plain();
        const auto file = std::make_shared<FailingFile>(how.file);
        how.file = file;
        how.before_reading = [&] {
          if (comm->rank() == failing) file->fail_reads_at(data_.byte_of(sample));
        };
        start_scattered(rank, how, 20s);
      }
      std::optional<Error> failure;
      expect_right_batches(rank, comm->rank(), data_.records(), &failure);
      ASSERT_TRUE(failure);
      EXPECT_EQ(failure->where().rank, failing);
      const std::lock_guard lock(mutex);
      messages.insert(failure->what());
    });
    EXPECT_EQ(messages.size(), 1U);
    EXPECT_LT(now_seconds() - begin, 5);
  }
}

}  // namespace
}  // namespace forebay
