// Runs in orders that are new in every epoch, stopped and resumed: on the same ranks they go on
// identically; on others nothing of the epoch is repeated or lost, and the next one is plain.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "forebay/error.hpp"
#include "tests/loader/draw_data.hpp"
#include "tests/support/scale.hpp"
#include "tests/support/temporary_folder.hpp"

namespace forebay {
namespace {

using test::Deliveries;
using test::DrawData;
using test::LmdbBuilder;

struct Case {
  std::string name;
  OrderName order = OrderName::shuffled;
  double ratio = 1;
  Hold hold = Hold::storage;
  std::uint64_t reuse = 1;
  std::size_t turn = 0;
};

class DrawResume : public testing::TestWithParam<Case> {
 protected:
  DrawResume() : data_(folder_.file("data"), LmdbBuilder().random_order(97).values(0, 6000)) {}

  LoaderOptions options(std::uint64_t batch) const {
    LoaderOptions options(OrderOptions{.batch = batch});
    options.order = GetParam().order;
    options.ratio = GetParam().ratio;
    options.hold = GetParam().hold;
    options.reuse = GetParam().reuse;
    options.reuse_scope = ReuseScope::global;
    options.seed = 5;
    options.stage_bytes = std::uint64_t{24} << 20;
    options.window = 4;
    options.one_at_a_time = GetParam().turn % 2 == 0;
    if (options.order == OrderName::grouped) options.group = 6;
    if (options.order == OrderName::listed) options.ids = list_;
    return options;
  }

  /// Goes on from `state_`, or starts, for `iterations` more, or to the end of `epochs`.
  void stretch(int ranks, LoaderOptions options, std::uint64_t iterations,
               std::uint64_t prefetch = 1) {
    options.buffers = static_cast<int>(prefetch) + 1;
    options.roots = stretches_++ % 4 - 1;  // who reads may change on the way
    if (!state_.empty()) options = resume_options(state_, options, ranks);
    run_ranks(ranks, 2, [&](const auto& comm) {
      Loader loader = Loader::open(comm, data_.path(), options);
      for (std::uint64_t i = 0; i < iterations; ++i) {
        const auto batch = loader.next();
        if (!batch) break;
        deliveries_.count(*batch);
        note(comm->rank(), *batch);
      }
      comm->barrier();
      if (comm->rank() == 0) state_ = loader.state();
    });
  }

  void note(int rank, const Batch& batch) {
    const std::lock_guard lock(mutex_);
    auto& ids = delivered_[{batch.iteration(), rank}];
    for (const Sample& sample : batch.samples()) ids.push_back(sample.id);
  }

  /// In `make test` each order takes every third of the cases of a test, and any three orders take
  /// them all.
  bool is_turn_of(std::size_t number) const {
    return test::test_scale() > 1 || (number + GetParam().turn) % 3 == 0;
  }

  /// Under a sanitizer an order takes only one of the three long tests.
  bool is_left_out(std::size_t number) const { return test::kSanitized && !is_turn_of(number); }

  void start_over() {
    state_.clear();
    delivered_.clear();
  }

  using Delivered = std::map<std::pair<std::uint64_t, int>, std::vector<std::uint64_t>>;

  test::TemporaryFolder folder_;
  DrawData data_;
  SharedNumbers list_ = [] {
    std::vector<std::uint64_t> ids;
    for (std::uint64_t i = 0; i < 97; ++i) ids.push_back((i * 31 + 5) % 97);
    return std::make_shared<const std::vector<std::uint64_t>>(ids);
  }();
  Deliveries deliveries_;
  int stretches_ = 0;
  std::mutex mutex_;
  Delivered delivered_;
  std::string state_;
};

constexpr std::uint64_t kToTheEnd = UINT64_MAX;

TEST_P(DrawResume, TheSameRanksGoOnIdentically) {
  if (is_left_out(0)) GTEST_SKIP() << "another order's turn";
  LoaderOptions options = this->options(10);
  options.epochs = 3;
  stretch(3, options, kToTheEnd);
  const Delivered whole = delivered_;
  const std::uint64_t steps = EpochOrder(data_.order(options, 3), 0).steps();
  struct Stop {
    std::uint64_t at;
    std::uint64_t prefetch = 8;
  };
  const std::vector<Stop> stops = {{0},         {1},     {steps / 2}, {steps / 2, 1},
                                   {steps - 1}, {steps}, {2 * steps}, {3 * steps}};
  for (std::size_t number = 0; number < stops.size(); ++number) {
    if (!is_turn_of(number)) continue;
    start_over();
    stretch(3, options, stops[number].at, stops[number].prefetch);
    stretch(3, options, kToTheEnd);
    ASSERT_EQ(delivered_, whole) << "after " << stops[number].at;
  }
}

TEST_P(DrawResume, StoppingAfterEveryBatchChangesNothing) {
  if (is_left_out(1)) GTEST_SKIP() << "another order's turn";
  LoaderOptions options = this->options(10 * GetParam().reuse);  // as many batches in all cases
  options.epochs = 2;
  stretch(2, options, kToTheEnd);
  const Delivered whole = delivered_;
  start_over();
  const std::size_t steps = whole.size() / 2;
  for (std::size_t i = 0; i <= steps; ++i) stretch(2, options, 1, 8);
  EXPECT_EQ(delivered_, whole);
}

TEST_P(DrawResume, TwiceInOneEpoch) {
  if (is_left_out(2)) GTEST_SKIP() << "another order's turn";
  LoaderOptions options = this->options(10);
  options.epochs = 2;
  stretch(4, options, kToTheEnd);
  const Delivered whole = delivered_;
  start_over();
  stretch(4, options, 2);
  stretch(4, options, 3);
  stretch(4, options, kToTheEnd);
  EXPECT_EQ(delivered_, whole);
}

TEST_P(DrawResume, OtherRanksTakeTheRestOfTheEpochAndThenWholeOnes) {
  const std::vector<std::vector<int>> chains = {{4, 2}, {4, 3}, {4, 6}, {4, 2, 3, 6}, {4, 3, 4, 6}};
  for (std::size_t number = 0; number < chains.size(); ++number) {
    if (!is_turn_of(number)) continue;
    const std::vector<int>& chain = chains[number];
    Deliveries deliveries;
    state_.clear();
    for (std::size_t link = 0; link < chain.size(); ++link) {
      const bool last = link + 1 == chain.size();
      LoaderOptions options = this->options(9 + link);
      options.roots = static_cast<int>(number + link) % 3;
      if (!state_.empty()) options = resume_options(state_, options, chain[link]);
      options.epochs = 3;
      run_ranks(chain[link], 0, [&](const auto& comm) {
        Loader loader = Loader::open(comm, data_.path(), options);
        for (int i = 0; last || i < 2; ++i) {
          const auto batch = loader.next();
          if (!batch) break;
          deliveries.count(*batch);
        }
        comm->barrier();
        if (comm->rank() == 0) state_ = loader.state();
      });
    }
    deliveries.expect_all(data_.entries(), 3, GetParam().reuse);
  }
}

TEST_P(DrawResume, AnotherOrderIsRefused) {
  stretch(2, options(10), 3);
  LoaderOptions other = options(10);
  other.seed = 6;
  const LoaderOptions resumed = resume_options(state_, other, 1);
  try {
    Loader::open(self_communicator(), data_.path(), resumed);
    FAIL() << "opened";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::usage);
    EXPECT_THAT(error.what(), testing::HasSubstr("seed=5"));
  }
  other.order = OrderName::strided;
  EXPECT_THROW(resume_options(state_, other, 1), Error);
}

INSTANTIATE_TEST_SUITE_P(
    Orders, DrawResume,
    testing::Values(
        Case{.name = "grouped", .order = OrderName::grouped}, Case{.name = "shuffled", .turn = 1},
        Case{.name = "listed", .order = OrderName::listed, .turn = 2},
        Case{.name = "in_memory", .order = OrderName::in_memory},
        Case{.name = "hybrid", .order = OrderName::in_memory, .ratio = 0.3, .turn = 1},
        Case{.name = "reused_hybrid",
             .order = OrderName::in_memory,
             .ratio = 0.5,
             .reuse = 2,
             .turn = 2},
        Case{.name = "held", .hold = Hold::memory},
        Case{.name = "held_groups", .order = OrderName::grouped, .hold = Hold::memory, .turn = 1},
        Case{.name = "reused", .reuse = 2, .turn = 2}),
    [](const auto& one) { return one.param.name; });

}  // namespace
}  // namespace forebay
