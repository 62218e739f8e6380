// Cursors that go from root to root (lmm-dm): the right records with unequal work, also when a root
// leaves, and the first failure everywhere when one fails.
#include "read/walk/handoff_reader.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <mutex>
#include <random>
#include <set>

#include "tests/read/extent_support.hpp"
#include "tests/support/scale.hpp"

namespace forebay {
namespace {

using namespace std::chrono_literals;
using test::expect_right_batches;
using test::ExtentData;
using test::LmdbBuilder;
using test::nodes_of;
using test::ReadingPlan;
using test::ReadingRank;

LmdbBuilder some_records() { return LmdbBuilder().random_order(300).value_sizes({50, 700, 9000}); }

struct HandoffReading {
  std::shared_ptr<const File> file;
  Engine engine = Engine::mmap;
  std::function<void()> before_reading = {};  ///< called when everything is open
};

void start_handing_on(ReadingRank& rank, const ReadingPlan& plan, const HandoffReading& how) {
  auto source = std::make_unique<lmdb::LmdbSource>(
      lmdb::Database::open(test::as_read_by(how.engine, how.file)));
  lmdb::LmdbSource& records = *source;
  rank.start(std::move(source), [&](const ReadingRank::Root& root) {
    HandoffParts parts{.source = records,
                       .plan = HandOffPlan(root.map, 0, plan.iterations),
                       .me = root.roots->rank(),
                       .link = CursorLink(root.roots, 20s),
                       .give_up = root.give_up};
    auto reader = std::make_unique<HandoffReader>(std::move(parts), root.plan, root.stage,
                                                  root.number, root.turns);
    if (how.before_reading) how.before_reading();
    return reader;
  });
}

class HandoffReaderTest : public ::testing::Test {
 protected:
  /// All ranks take their batches, but `leaving`, which closes its loader after `batches`.
  void expect_all_right(const ExtentData& data, const ReadingPlan& plan, Engine engine,
                        const StaggerOptions& turns = {}, int leaving = -1,
                        std::uint64_t batches = 0) {
    run_ranks(plan.ranks(), 0, [&](const auto& comm) {
      const int me = comm->rank();
      ReadingRank rank(comm, plan, turns);
      if (rank.is_root()) {
        start_handing_on(rank, plan, {.file = data.open_file(), .engine = engine});
      }
      const auto most = me == leaving ? batches : plan.iterations;
      EXPECT_EQ(expect_right_batches(rank, me, data.records(), nullptr, most), most);
      rank.close();
      comm->barrier();
    });
  }

  /// Nodes of different sizes, a batch that they do not divide.
  ReadingPlan unequal() const {
    ReadingPlan plan{.entries = data_.entries(), .batch = 17, .coalesce = 3, .iterations = 60};
    plan.groups = nodes_of({1, 4, 2});
    return plan;
  }

  ExtentData data_{some_records()};
};

TEST_F(HandoffReaderTest, RecordsAreRightWithUnequalWork) {
  const ExtentData others[] = {
      ExtentData(LmdbBuilder().random_order(150).values(0, 6000).delete_every(3).commit_every(10)),
      ExtentData(LmdbBuilder().in_order(1).values(5000))};
  std::mt19937_64 random(8);
  const auto pick = [&random](std::uint64_t least, std::uint64_t most) {
    return std::uniform_int_distribution<std::uint64_t>(least, most)(random);
  };
  for (int round = 0; round < test::random_cases(25); ++round) {
    const std::uint64_t which = pick(0, 2);
    const ExtentData& data = which == 2 ? data_ : others[which];
    ReadingPlan plan{.entries = data.entries(),
                     .batch = pick(12, 40),
                     .coalesce = pick(1, 6),
                     .iterations = pick(1, 40)};
    std::vector<int> nodes(pick(1, 4));
    for (int& ranks : nodes) ranks = static_cast<int>(pick(1, 3));
    plan.groups = nodes_of(nodes, static_cast<int>(pick(1, 2)));
    plan.buffers = static_cast<int>(pick(1, 3));
    StaggerOptions turns;
    turns.by = static_cast<StaggerBy>(pick(0, 2));
    turns.group = static_cast<int>(pick(1, 3));
    expect_all_right(data, plan, pick(0, 1) == 0 ? Engine::mmap : Engine::pread, turns);
  }
}

TEST_F(HandoffReaderTest, OthersGoOnWithoutARootThatLeaves) {
  const ReadingPlan plan = unequal();  // nobody depends on rank 0
  for (const std::uint64_t batches : {0, 1, 7, 58, 59}) {
    expect_all_right(data_, plan, Engine::mmap, {}, 0, batches);
    expect_all_right(data_, plan, Engine::mmap, {.by = StaggerBy::token, .group = 1}, 0, batches);
  }
}

/// A large sample among those that `rank` takes first in an iteration from the 20th on.
std::uint64_t large_sample_of(int rank, const ReadingPlan& plan, const ExtentData& data) {
  const StridedOrder order(plan.entries, plan.ranks(), plan.batch, plan.coalesce);
  for (std::uint64_t i = 20;; ++i) {
    const std::uint64_t sample = order.sample(order.run(rank, i).first);
    if (data.records()[sample].value.size() == 9000) return sample;
  }
}

TEST_F(HandoffReaderTest, AFailureOfAnyRootEndsAllWithItsMessage) {
  ReadingPlan plan = unequal();
  plan.iterations = 1'000'000;  // nobody comes to the end before he hears of it
  for (const Engine engine : {Engine::pread, Engine::mmap}) {
    for (const int failing : {0, 1, 5}) {
      const std::uint64_t byte = data_.byte_of(large_sample_of(failing, plan, data_));
      std::set<std::string> messages;
      std::mutex mutex;
      const double begin = now_seconds();
      run_ranks(plan.ranks(), 0, [&](const auto& comm) {
        ReadingRank rank(comm, plan, {.by = StaggerBy::ticket, .group = 2});
        if (rank.is_root()) {
          const auto file = std::make_shared<FailingFile>(data_.open_file());
          const auto break_it = [&] {
            if (comm->rank() != failing) return;
            if (engine == Engine::mmap) return file->fault_map_at(byte);
            file->fail_reads_at(byte);
          };
          start_handing_on(rank, plan,
                           {.file = file, .engine = engine, .before_reading = break_it});
        }
        std::optional<Error> failure;
        expect_right_batches(rank, comm->rank(), data_.records(), &failure);
        ASSERT_TRUE(failure);
        EXPECT_EQ(failure->kind(), ErrorKind::io);
        EXPECT_EQ(failure->where().rank, failing);
        EXPECT_EQ(failure->where().offset, byte);
        const std::lock_guard lock(mutex);
        messages.insert(failure->what());
      });
      EXPECT_EQ(messages.size(), 1U);
      EXPECT_LT(now_seconds() - begin, 5);
    }
  }
}

/// Pages of the guesses of all roots.
struct Speculated {
  std::int64_t missed = 0;
  std::int64_t redundant = 0;
};

Speculated speculated(const ExtentData& data, const ReadingPlan& plan) {
  Speculated sum;
  std::mutex mutex;
  run_ranks(plan.ranks(), 0, [&](const auto& comm) {
    ReadingRank rank(comm, plan);
    if (rank.is_root()) start_handing_on(rank, plan, {.file = data.open_file()});
    expect_right_batches(rank, comm->rank(), data.records());
    if (rank.is_root()) {
      const std::lock_guard lock(mutex);
      sum.missed += static_cast<std::int64_t>(rank.totals().missed_pages);
      sum.redundant += static_cast<std::int64_t>(rank.totals().redundant_pages);
    }
    comm->barrier();
  });
  return sum;
}

/// Parts of all windows from `window` on, and the leaves and overflow pages that they need.
struct Needed {
  std::int64_t parts = 0;
  std::int64_t pages = 0;
};

Needed needed(const ExtentData& data, const ReadingPlan& plan, std::uint64_t window) {
  constexpr std::uint64_t kPage = 4096;
  const RootMap map({plan.entries, plan.ranks(), plan.batch, plan.coalesce}, plan.groups);
  Needed sum;
  for (; window * plan.coalesce < plan.iterations; ++window) {
    for (int root = 0; root < map.roots(); ++root) {
      const auto pieces = map.pieces(root, {window, Phase::whole, plan.coalesce});
      for (const SampleRun& run : sample_runs(map.order(), pieces)) {
        ++sum.parts;
        std::set<std::uint64_t> pages;
        for (const FileExtent& extent : data.extents(run.sample, run.count)) {
          const std::uint64_t end = (extent.offset + extent.length + kPage - 1) / kPage;
          for (std::uint64_t page = extent.offset / kPage; page < end; ++page) pages.insert(page);
        }
        sum.pages += static_cast<std::int64_t>(pages.size());
      }
    }
  }
  return sum;
}

/// An epoch and a half by random nodes in random windows.
ReadingPlan some_reading(const ExtentData& data, std::mt19937_64& random) {
  const auto pick = [&random](std::uint64_t least, std::uint64_t most) {
    return std::uniform_int_distribution<std::uint64_t>(least, most)(random);
  };
  ReadingPlan plan{.entries = data.entries()};
  std::vector<int> nodes(pick(1, 6));
  for (int& ranks : nodes) ranks = static_cast<int>(pick(1, 3));
  plan.groups = nodes_of(nodes, static_cast<int>(pick(1, 2)));
  plan.batch = pick(static_cast<std::uint64_t>(plan.ranks()), 60);
  plan.coalesce = pick(1, 5);
  // Whole windows: over what the last one leaves out, cursors walk.
  plan.iterations = plan.entries * 3 / 2 / (plan.batch * plan.coalesce) * plan.coalesce;
  return plan;
}

TEST_F(HandoffReaderTest, SpeculationFindsEvenRecordsAndNoOthers) {
  std::mt19937_64 random(15);
  for (int round = 0; round < test::long_cases(20); ++round) {
    const std::uint64_t bytes = round % 2 == 0 ? 20 + random() % 1980 : 2100 + random() % 20000;
    const std::uint64_t records = std::min<std::uint64_t>(4'000'000 / bytes, 800 + random() % 2000);
    LmdbBuilder builder = LmdbBuilder().values(bytes).commit_every(round % 4 < 2 ? 0 : 300);
    const ExtentData data(round % 3 == 0 ? builder.in_order(records) : builder.appended(records));
    const ReadingPlan plan = some_reading(data, random);
    const Speculated all = speculated(data, plan);
    EXPECT_EQ(all.missed, 0) << records << " records of " << bytes << " bytes";
    EXPECT_LE(all.redundant, 1) << "the leaf behind the last record, where nobody goes on";
  }
}

// Sizes within a tenth of one another, and keys of all lengths; so leaves hold nearly as many
// records each, unless these are so large that two or three fill a leaf. Of what is touched, half
// is needed at least; but of a part of one or two records a page at each end is as much as the part
// itself, so two pages a part are granted beyond that.
TEST_F(HandoffReaderTest, SpeculationFindsNearlyEvenRecordsAfterThreeWindows) {
  std::mt19937_64 random(16);
  for (int round = 0; round < test::long_cases(20); ++round) {
    const std::size_t bytes = round % 2 == 0 ? 20 + random() % 600 : 2500 + random() % 20000;
    const std::uint64_t records = std::min<std::uint64_t>(4'000'000 / bytes, 800 + random() % 2000);
    const ExtentData data(LmdbBuilder()
                              .in_order(records)
                              .file_name_keys()
                              .values(bytes * 9 / 10, bytes * 11 / 10)
                              .commit_every(300));
    const ReadingPlan plan = some_reading(data, random);
    ReadingPlan start = plan;
    start.iterations = std::min(3 * plan.coalesce, plan.iterations);
    const Speculated first = speculated(data, start);
    const Speculated all = speculated(data, plan);
    const Needed rest = needed(data, plan, 3);
    EXPECT_LE(10 * (all.missed - first.missed), rest.pages);
    EXPECT_LE(all.redundant - first.redundant, rest.pages + 2 * rest.parts);
  }
}

TEST_F(HandoffReaderTest, BytesThatWereTouchedInVainAreBytesRequested) {
  ReadingPlan plan = unequal();
  for (const Engine engine : {Engine::mmap, Engine::pread}) {
    run_ranks(plan.ranks(), 0, [&](const auto& comm) {
      ReadingRank rank(comm, plan);
      if (rank.is_root()) {
        start_handing_on(rank, plan, {.file = data_.open_file(), .engine = engine});
      }
      expect_right_batches(rank, comm->rank(), data_.records());
      if (rank.is_root()) {
        const ReadTotals totals = rank.totals();
        const std::uint64_t used = totals.source.pages_visited * 4096;
        EXPECT_GT(totals.source.bytes_requested, used);
        if (engine == Engine::mmap) {
          EXPECT_LE(totals.source.bytes_requested, used + totals.redundant_pages * 4096);
        }
      }
      comm->barrier();
    });
  }
}

TEST_F(HandoffReaderTest, SpeculationIsCountedAndHarmless) {
  ReadingPlan plan = unequal();
  run_ranks(plan.ranks(), 0, [&](const auto& comm) {
    ReadingRank rank(comm, plan);
    if (rank.is_root()) start_handing_on(rank, plan, {.file = data_.open_file()});
    expect_right_batches(rank, comm->rank(), data_.records());
    if (rank.is_root()) {
      // Records lie in random order, so some guesses must have been wrong.
      EXPECT_GT(rank.totals().missed_pages + rank.totals().redundant_pages, 0U);
    }
    comm->barrier();
  });
}

}  // namespace
}  // namespace forebay
