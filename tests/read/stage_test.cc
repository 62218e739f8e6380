// The stage's protocol with real concurrency: roots and ranks are threads (also under the thread
// sanitizer), buffers are few and small so that wrap-around is the rule.
#include "read/stage.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <numeric>
#include <thread>

#include "core/clock.hpp"
#include "forebay/error.hpp"
#include "read/root_reader.hpp"
#include "read/walk/walks.hpp"
#include "tests/support/counting_source.hpp"

namespace forebay {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr std::uint64_t kWindows = 40;

void fill_all(Stage& stage, const WindowPlan& plan, int root) {
  test::CountingSource source(plan.order().entries());
  ReadFigures figures;
  Turns turns(make_stagger(*self_communicator(), {}, nullptr), {});
  StridedList list(std::make_shared<WindowPlan>(plan), root, kWindows * plan.order().coalesce());
  WalkReader reader(source, list, stage, root, turns);
  WindowReader windows(reader, stage, root, figures);
  for (std::uint64_t window = 0; window < kWindows; ++window) {
    while (!stage.wait_free(window, milliseconds(100))) {
    }
    windows.fill(window, list.iterations(window), list.iterations(window + 1), {});
  }
}

void consume_all(Stage& stage, const WindowPlan& plan, int rank) {
  const StridedOrder& order = plan.order();
  for (std::uint64_t t = 0; t < kWindows * order.coalesce(); ++t) {
    ASSERT_TRUE(stage.wait_published(t, seconds(60)));
    const Run run = order.run(rank, t);
    for (std::uint64_t k = 0; k < run.count; ++k) {
      const StageEntry& entry = stage.entry(t / order.coalesce(), plan.entry(rank, t, k));
      const std::uint64_t sample = order.sample(run.first + k);
      ASSERT_EQ(entry.sample, sample);
      ASSERT_EQ(test::text(stage.key(entry)), std::to_string(sample));
      ASSERT_EQ(test::text(stage.value(entry)), test::counting_value(sample));
      ASSERT_EQ(entry.offset % 64, 0U);
    }
    stage.release(rank, t + 1);
  }
}

void run_stage(int ranks, int roots, int buffers, std::uint64_t coalesce) {
  run_ranks(ranks, 0, [&](const auto& comm) {
    std::vector<int> all(static_cast<std::size_t>(ranks));
    std::iota(all.begin(), all.end(), 0);
    const WindowPlan plan(StridedOrder(101, ranks, 13, coalesce), all, roots);
    const StageShape shape{.ranks = ranks,
                           .roots = roots,
                           .buffers = buffers,
                           .iterations = coalesce,
                           .entries = plan.entries(),
                           .data_bytes = std::uint64_t{1} << 20};
    Stage stage(*comm, shape, SharedMemoryKind::posix, 0);
    std::jthread reader;
    if (comm->rank() < roots) reader = std::jthread([&] { fill_all(stage, plan, comm->rank()); });
    consume_all(stage, plan, comm->rank());
  });
}

TEST(Stage, DeliversEverySampleThroughFewBuffers) {
  for (const int buffers : {1, 2, 3}) {
    for (const std::uint64_t coalesce : {1, 3}) {
      run_stage(1, 1, buffers, coalesce);
      run_stage(4, 1, buffers, coalesce);
      run_stage(5, 3, buffers, coalesce);
    }
  }
}

Stage small_stage(std::uint64_t bytes) {
  const StageShape shape{
      .ranks = 1, .roots = 1, .buffers = 2, .iterations = 1, .entries = 4, .data_bytes = bytes};
  return {*self_communicator(), shape, SharedMemoryKind::posix, 0};
}

TEST(Stage, SaysWhatToDoWhenAWindowDoesNotFit) {
  Stage stage = small_stage(4 * 8192);
  stage.begin(0, 0);
  const std::vector<std::byte> value(7000);
  stage.append(0, 0, 0, 0, {}, value);
  stage.append(0, 0, 1, 1, {}, value);
  try {
    stage.append(0, 0, 2, 2, {}, value);
    FAIL() << "three values of 7000 bytes in 16384";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::usage);
    EXPECT_THAT(error.what(), testing::HasSubstr("--stage-bytes"));
  }
}

TEST(Stage, RefusesATableThatOutgrowsTheBudget) {
  StageShape shape{
      .ranks = 1, .roots = 1, .buffers = 8, .iterations = 1, .entries = 0, .data_bytes = 1 << 20};
  // 2^56 entries in 8 buffers: the product of bytes wraps to zero.
  for (const std::uint64_t entries : {std::uint64_t{1} << 13, std::uint64_t{1} << 56}) {
    shape.entries = entries;
    EXPECT_THROW(Stage(*self_communicator(), shape, SharedMemoryKind::posix, 0), Error);
  }
}

TEST(Stage, HoldsEmptyKeysAndValues) {
  Stage stage = small_stage(1 << 16);
  stage.begin(0, 0);
  stage.append(0, 0, 0, 0, {}, {});
  stage.publish(0, 1, {});
  ASSERT_TRUE(stage.wait_published(0, milliseconds(0)));
  EXPECT_TRUE(stage.value(stage.entry(0, 0)).empty());
  EXPECT_TRUE(stage.key(stage.entry(0, 0)).empty());
}

TEST(Stage, HoldsRecordsInPlaceOfWholePages) {
  Stage stage = small_stage(1 << 16);
  stage.begin(0, 0);
  const auto pages = stage.take(0, 0, 8192);
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(pages.data()) % 4096, 0U);
  const std::string text = "keyvalue";
  std::memcpy(pages.data() + 4000, text.data(), text.size());
  stage.place(0, 0, 7, pages.subspan(4000, 3), pages.subspan(4003, 5));
  stage.publish(0, 1, {});
  EXPECT_EQ(stage.entry(0, 0).sample, 7U);
  EXPECT_EQ(test::text(stage.key(stage.entry(0, 0))), "key");
  EXPECT_EQ(test::text(stage.value(stage.entry(0, 0))), "value");
}

TEST(Stage, PointsAtMemoryBesideItThatItKeeps) {
  const auto file = std::make_shared<const std::string>("a key and a value of a file");
  const auto bytes = std::as_bytes(std::span(*file));
  Stage stage = small_stage(1 << 16);
  stage.extend(bytes, file);
  EXPECT_EQ(file.use_count(), 2);
  stage.begin(0, 0);
  const auto copied = stage.copy(0, 0, bytes.subspan(2, 3));
  stage.place(0, 0, 7, bytes.subspan(2, 3), bytes.subspan(12, 5));
  stage.place(0, 1, 8, copied, bytes.subspan(bytes.size() - 4));
  stage.place(0, 2, 9, bytes.first(0), bytes.first(1));
  stage.publish(0, 1, {});
  EXPECT_EQ(test::text(stage.key(stage.entry(0, 0))), "key");
  EXPECT_EQ(test::text(stage.value(stage.entry(0, 0))), "value");
  EXPECT_EQ(stage.value(stage.entry(0, 0)).data(), bytes.data() + 12) << "nothing is copied";
  EXPECT_EQ(test::text(stage.key(stage.entry(0, 1))), "key");
  EXPECT_EQ(test::text(stage.value(stage.entry(0, 1))), "file");
  EXPECT_TRUE(stage.key(stage.entry(0, 2)).empty());
  EXPECT_EQ(test::text(stage.value(stage.entry(0, 2))), "a");
}

TEST(Stage, OfSeveralProcessesPointsAtNothingElse) {
  run_ranks(2, 0, [&](const auto& comm) {
    const StageShape shape{.ranks = 2,
                           .roots = 1,
                           .buffers = 1,
                           .iterations = 1,
                           .entries = 1,
                           .data_bytes = std::uint64_t{1} << 16};
    Stage stage(*comm, shape, SharedMemoryKind::posix, 0);
    EXPECT_THROW(stage.extend({}, nullptr), Error);
    comm->barrier();
  });
}

TEST(Stage, GivesBackRoomThatWasTakenInVain) {
  Stage stage = small_stage(4 * 8192);
  stage.begin(0, 0);
  const std::uint64_t mark = stage.mark(0);
  const auto first = stage.take(0, 0, 16384);
  EXPECT_THROW(stage.take(0, 0, 1), Error);
  stage.rewind(0, mark);
  EXPECT_EQ(stage.take(0, 0, 16384).data(), first.data());
}

TEST(Stage, AClosedRootEndsTheWaitAndAClosedRankHoldsNothingUp) {
  Stage stage = small_stage(1 << 16);
  EXPECT_FALSE(stage.wait_published(0, milliseconds(1)));
  EXPECT_FALSE(stage.wait_free(2, milliseconds(1)));
  stage.close_root(0);
  stage.release_all(0);
  EXPECT_TRUE(stage.wait_free(2, milliseconds(1)));
  EXPECT_THROW(stage.wait_published(0, seconds(60)), Error);
}

TEST(Stage, WhatARootPublishedBeforeItClosedStaysReadable) {
  Stage stage = small_stage(1 << 16);
  stage.begin(0, 0);
  stage.append(0, 0, 0, 0, {}, {});
  stage.publish(0, 1, {});
  stage.close_root(0);
  EXPECT_TRUE(stage.wait_published(0, seconds(60)));
  EXPECT_THROW(stage.wait_published(1, seconds(60)), Error);
}

TEST(Stage, WakingEndsEveryWaitAtOnce) {
  Stage stage = small_stage(1 << 16);
  const double begin = now_seconds();
  std::atomic<int> ended = 0;
  std::jthread root([&] {
    EXPECT_FALSE(stage.wait_free(2, seconds(60)));
    ++ended;
  });
  std::jthread consumer([&] {
    EXPECT_FALSE(stage.wait_published(0, seconds(60)));
    ++ended;
  });
  while (ended < 2) {
    stage.wake();  // again and again: a wake-up before the wait begins is not remembered
    std::this_thread::sleep_for(milliseconds(5));
  }
  EXPECT_LT(now_seconds() - begin, 30);
}

}  // namespace
}  // namespace forebay
