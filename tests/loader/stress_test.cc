// Anything together with anything: strategies, knobs, layouts, ranks that stop early or fail, at
// random. What is delivered is right; who is not told of a failure gets everything; nobody hangs.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <mutex>
#include <random>
#include <thread>

#include "core/clock.hpp"
#include "forebay/error.hpp"
#include "forebay/loader.hpp"
#include "tests/support/counting_source.hpp"
#include "tests/support/lmdb_builder.hpp"
#include "tests/support/scale.hpp"
#include "tests/support/temporary_folder.hpp"

namespace forebay {
namespace {

using test::LmdbBuilder;
using test::OracleRecord;

constexpr int kNobody = -1;
/// Shorter than any wait that ends by its limit.
constexpr double kLongest = 15;

struct StressData {
  std::string path;
  std::vector<OracleRecord> records;
};

/// One run, drawn from a number.
struct StressCase {
  const StressData* data = nullptr;
  int ranks = 1;
  int ranks_per_node = 0;
  LoaderOptions options;
  int leaving = kNobody;
  std::uint64_t leaves_after = 0;
  int failing = kNobody;
  std::uint64_t fails_after = 0;
  int slow = kNobody;

  std::string describe() const {
    const auto number = [](auto value) { return std::to_string(value); };
    std::string text = data->path + " by " + number(ranks) + " ranks, " + number(ranks_per_node) +
                       " a node: " + options.to_text();
    if (leaving != kNobody)
      text += "; " + number(leaving) + " leaves after " + number(leaves_after);
    if (failing != kNobody) text += "; " + number(failing) + " fails after " + number(fails_after);
    return text;
  }
};

class Stress : public ::testing::Test {
 protected:
  Stress() {
    add("small", LmdbBuilder().in_order(300).values(0, 400));
    add("large", LmdbBuilder().random_order(150).values(0, 20'000));
    add("holes", LmdbBuilder().random_order(300).values(0, 7000).delete_every(4).commit_every(9));
    add("one", LmdbBuilder().in_order(1).values(5000));
  }

  void add(const std::string& name, const LmdbBuilder& builder) {
    StressData data;
    data.path = builder.build(folder_.file(name));
    data.records = test::read_with_liblmdb(data.path);
    all_.push_back(std::move(data));
  }

  StressCase draw(std::uint64_t seed) const {
    std::mt19937_64 random(seed);
    const auto pick = [&random](std::uint64_t least, std::uint64_t most) {
      return std::uniform_int_distribution<std::uint64_t>(least, most)(random);
    };
    StressCase drawn;
    drawn.data = &all_[pick(0, all_.size() - 1)];
    drawn.ranks = static_cast<int>(pick(1, 6));
    drawn.ranks_per_node = static_cast<int>(pick(0, 3));
    draw_options(drawn.options, drawn.ranks, pick);
    const auto some_rank = [&](std::uint64_t one_in) {
      const int rank = static_cast<int>(pick(0, static_cast<std::uint64_t>(drawn.ranks) - 1));
      return pick(1, one_in) == 1 ? rank : kNobody;
    };
    drawn.leaving = some_rank(3);
    drawn.leaves_after = pick(0, drawn.options.iterations);
    drawn.failing = some_rank(3);
    drawn.fails_after = pick(0, drawn.options.iterations);
    drawn.slow = some_rank(2);
    return drawn;
  }

  template <typename Pick>
  static void draw_options(LoaderOptions& options, int ranks, const Pick& pick) {
    options.batch = pick(static_cast<std::uint64_t>(ranks), 30);
    options.coalesce = pick(0, 2) == 0 ? pick(1, 30) : pick(0, 4);
    options.iterations = pick(1, 40);
    options.strategy = static_cast<Strategy>(pick(0, 7));
    if (options.strategy != Strategy::lmdb) {
      if (pick(0, 2) == 0) options.locate = static_cast<Locate>(pick(0, 5));
      if (pick(0, 1) == 0) options.engine = static_cast<ReadEngine>(pick(0, 3));
    }
    options.roots = static_cast<int>(pick(0, 3));
    options.buffers = static_cast<int>(pick(1, 3));
    options.stagger = static_cast<int>(pick(0, 6)) - 2;
    options.stagger_by = static_cast<StaggerBy>(pick(0, 2));
    options.depth = static_cast<unsigned>(pick(0, 3));
    options.gap_bytes = pick(0, 1) * 65536;
    options.request_bytes = pick(0, 1) * 8192;
    options.stage_bytes = std::uint64_t{64} << 20;
    options.timeout = std::chrono::seconds(20);
  }

  void play(const StressCase& drawn) {
    const double begin = now_seconds();
    std::atomic<int> cancelled = 0;
    run_ranks(drawn.ranks, drawn.ranks_per_node, [&](const auto& comm) {
      Loader loader = Loader::open(comm, drawn.data->path, drawn.options);
      const int me = comm->rank();
      try {
        const std::uint64_t came = consume(loader, me, drawn);
        EXPECT_TRUE(me == drawn.leaving || came == drawn.options.iterations);
      } catch (const Error& error) {
        // Who shares its stage with a root that leaves gets no more data.
        if (error.kind() == ErrorKind::cancelled && drawn.leaving != kNobody) {
          ++cancelled;
        } else {
          EXPECT_THAT(error.what(), testing::HasSubstr("fell over"));
          EXPECT_EQ(error.where().rank, drawn.failing);
        }
      }
    });
    EXPECT_LT(now_seconds() - begin, kLongest);
    if (drawn.leaving == kNobody) {
      EXPECT_EQ(cancelled, 0);
    }
  }

  /// Returns how many batches came.
  std::uint64_t consume(Loader& loader, int me, const StressCase& drawn) {
    const StridedOrder& order = loader.order();
    for (std::uint64_t came = 0;; ++came) {
      if (me == drawn.leaving && came == drawn.leaves_after) return came;
      if (me == drawn.failing && came == drawn.fails_after) {
        loader.fail(Error(ErrorKind::corrupt, "a consumer fell over", "", {.rank = me}));
      }
      const auto batch = loader.next();
      if (!batch) return came;
      EXPECT_EQ(batch->iteration(), came);
      expect_right(*batch, order, me, drawn.data->records);
      if (me == drawn.slow) std::this_thread::sleep_for(std::chrono::microseconds(500));
    }
  }

  static void expect_right(const Batch& batch, const StridedOrder& order, int rank,
                           const std::vector<OracleRecord>& records) {
    const forebay::Run run = order.run(rank, batch.iteration());
    ASSERT_EQ(batch.samples().size(), run.count);
    for (std::uint64_t k = 0; k < run.count; ++k) {
      const Sample& sample = batch.samples()[k];
      ASSERT_EQ(sample.global, run.first + k);
      ASSERT_EQ(sample.id, sample.global % records.size());
      ASSERT_EQ(test::text(sample.key), records[sample.id].key);
      ASSERT_EQ(test::text(sample.value), records[sample.id].value);
    }
  }

  test::TemporaryFolder folder_;
  std::vector<StressData> all_;
};

// A case that fails comes again with its number as FOREBAY_TEST_SEED.
TEST_F(Stress, RanksThatStopOrFailHarmNobody) {
  if (const char* seed = std::getenv("FOREBAY_TEST_SEED")) {
    const StressCase drawn = draw(std::strtoull(seed, nullptr, 10));
    SCOPED_TRACE(drawn.describe());
    return play(drawn);
  }
  const auto cases = static_cast<std::uint64_t>(test::long_cases(80));
  for (std::uint64_t seed = 0; seed < cases; ++seed) {
    const StressCase drawn = draw(seed);
    SCOPED_TRACE("case " + std::to_string(seed) + ": " + drawn.describe());
    play(drawn);
    if (HasFailure()) return;
  }
}

}  // namespace
}  // namespace forebay
