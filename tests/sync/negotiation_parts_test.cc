// The parts of negotiation, each by itself: queue, cache, coordinator, fusion, messages.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <thread>

#include "comm/messages.hpp"
#include "sync/coordinator.hpp"
#include "sync/negotiation.hpp"
#include "sync/response_cache.hpp"

namespace forebay {
namespace {

using std::chrono::milliseconds;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

Signature sum_of(const std::string& name, std::vector<std::uint64_t> shape = {3},
                 TensorType type = TensorType::float32) {
  Signature signature;
  signature.tensor = {.name = name, .type = type, .shape = std::move(shape)};
  return signature;
}

TEST(RequestQueue, KeepsTheOrderOfEachThread) {
  constexpr int kThreads = 4;
  constexpr int kEach = 2000;
  RequestQueue queue;
  std::vector<std::jthread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&queue, t] {
      for (int i = 0; i < kEach; ++i) {
        queue.push(std::make_shared<Request>(Request{.root = t, .submitted_ns = i}));
      }
    });
  }
  std::vector<std::int64_t> next(kThreads, 0);
  for (int got = 0; got < kThreads * kEach;) {
    for (const auto& request : queue.take()) {
      EXPECT_EQ(request->submitted_ns, next[static_cast<std::size_t>(request->root)]++);
      ++got;
    }
  }
  EXPECT_TRUE(queue.empty());
}

TEST(ResponseCache, GivesTheOldestPlaceToANewTensor) {
  ResponseCache cache(3);
  for (const char* name : {"a", "b", "c"}) EXPECT_FALSE(cache.put(sum_of(name)));
  cache.touch(*cache.find("a"));
  const auto place_of_b = cache.find("b");
  EXPECT_TRUE(cache.put(sum_of("d")));
  EXPECT_FALSE(cache.find("b"));
  EXPECT_EQ(cache.find("d"), place_of_b);
  EXPECT_EQ(cache.slots(), 3U);
  cache.erase(*cache.find("c"));
  EXPECT_FALSE(cache.put(sum_of("e")));
  EXPECT_TRUE(cache.put(sum_of("f")));
  EXPECT_FALSE(cache.find("a")) << "a was the oldest by then";
  EXPECT_FALSE(cache.put(sum_of("f", {5}))) << "in the place that it has";
  EXPECT_EQ(cache.at(*cache.find("f"))->tensor.shape, std::vector<std::uint64_t>{5});
}

TEST(ResponseCache, WithoutRoomHoldsNothing) {
  ResponseCache cache(0);
  EXPECT_FALSE(cache.put(sum_of("a")));
  EXPECT_FALSE(cache.find("a"));
}

TEST(ReadyBits, TellWhichSlotsAreSet) {
  ReadyBits bits(130, ReadyBits::closing, false);
  for (const std::size_t slot : {0U, 63U, 64U, 129U}) bits.set(slot);
  bits.clear(63);
  EXPECT_THAT(bits.set_slots(), ElementsAre(0U, 64U, 129U));
  EXPECT_TRUE(bits.fact(ReadyBits::closing));
  EXPECT_FALSE(bits.fact(ReadyBits::nothing_new));
  EXPECT_EQ(ReadyBits(70, 0, true).set_slots().size(), 70U);
}

TEST(Coordinator, AnswersInTheOrderInWhichTensorsAreComplete) {
  Coordinator table(2, milliseconds(100), milliseconds(0));
  table.take(0, {{sum_of("a")}, {sum_of("b")}}, 0);
  EXPECT_TRUE(table.answer().empty());
  table.take(1, {{sum_of("b")}, {sum_of("c")}, {sum_of("a")}}, 5);
  const auto agreed = table.answer();
  ASSERT_EQ(agreed.size(), 2U);
  EXPECT_EQ(agreed[0].signature.tensor.name, "b");
  EXPECT_EQ(agreed[1].signature.tensor.name, "a");
  EXPECT_TRUE(agreed[0].error.empty());
  EXPECT_GT(table.skew_seconds(), 0);
}

TEST(Coordinator, NamesRanksAndShapesThatDiffer) {
  Coordinator table(3, milliseconds(100), milliseconds(0));
  table.take(0, {{sum_of("a", {1})}}, 0);
  table.take(1, {{sum_of("a", {2})}}, 0);
  table.take(2, {{sum_of("a", {1})}}, 0);
  const auto agreed = table.answer();
  ASSERT_EQ(agreed.size(), 1U);
  const Error error = parse_error(agreed[0].error);
  EXPECT_EQ(error.kind(), ErrorKind::usage);
  EXPECT_THAT(error.what(), HasSubstr("tensor 'a' is not the same on all ranks: allreduce(sum) of "
                                      "float32 [1] on ranks 0, 2, allreduce(sum) of float32 [2] on "
                                      "rank 1"));
}

TEST(Coordinator, CountsJoinedRanksAsReady) {
  Coordinator table(2, milliseconds(100), milliseconds(0));
  Signature join;
  join.operation = SyncOperation::join;
  table.take(0, {{sum_of("a")}}, 0);
  table.take(1, {{join}}, 0);
  EXPECT_EQ(table.answer().size(), 1U);
  table.take(0, {{sum_of("b")}, {join}}, 0);
  const auto agreed = table.answer();
  ASSERT_EQ(agreed.size(), 2U);
  EXPECT_EQ(agreed[1].signature.operation, SyncOperation::join);
  table.take(0, {{sum_of("c")}}, 0);
  EXPECT_TRUE(table.answer().empty()) << "nobody has joined any more";
}

TEST(Coordinator, RefusesWhatWaitsForARankThatHasClosed) {
  Signature close;
  close.operation = SyncOperation::close;
  Coordinator before(2, milliseconds(100), milliseconds(0));
  before.take(0, {{sum_of("a")}}, 0);
  EXPECT_THROW(before.take(1, {{close}}, 0), Error);

  Coordinator after(2, milliseconds(100), milliseconds(0));
  after.take(1, {{sum_of("a")}, {close}}, 0);
  after.take(0, {{sum_of("a")}}, 0);
  EXPECT_EQ(after.answer().size(), 1U) << "it has closed behind it";
  EXPECT_NO_THROW(after.take(0, {{sum_of("forebay:plan 1.0")}}, 0)) << "the engine's own";
  try {
    after.take(0, {{sum_of("b")}}, 0);
    FAIL() << "nothing was thrown";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::communication);
    EXPECT_EQ(error.where().rank, 1);
    EXPECT_THAT(error.what(), HasSubstr("tensor 'b'"));
  }
}

TEST(Coordinator, ReportsAStallOnceAndThenFails) {
  constexpr std::int64_t kMs = 1'000'000;
  Coordinator table(3, milliseconds(100), milliseconds(1000));
  table.take(1, {{sum_of("a"), 30 * kMs}}, 50 * kMs);  // since 20 ms
  EXPECT_FALSE(table.look_for_stalls(119 * kMs));
  const auto report = table.look_for_stalls(121 * kMs);
  ASSERT_TRUE(report);
  EXPECT_THAT(*report, HasSubstr("tensor 'a' has waited 0.1 s for ranks 0, 2"));
  EXPECT_FALSE(table.look_for_stalls(900 * kMs));
  EXPECT_EQ(table.stalls(), 1U);
  EXPECT_THROW(table.look_for_stalls(1021 * kMs), Error);
}

AgreedOperation agreed(const std::string& name, std::uint64_t elements,
                       TensorType type = TensorType::float32) {
  return {.signature = sum_of(name, {elements}, type)};
}

std::vector<std::size_t> parts_of(const std::vector<Transfer>& transfers) {
  std::vector<std::size_t> parts;
  for (const auto& transfer : transfers) parts.push_back(transfer.parts.size());
  return parts;
}

TEST(Fuse, FillsTransfersOfOneTypeUpToTheLimit) {
  const auto nothing = [](const std::string&) { return nullptr; };
  const std::vector<AgreedOperation> all{agreed("a", 10),      agreed("b", 10, TensorType::int32),
                                         agreed("c", 10),      agreed("d", 6),
                                         agreed("large", 100), agreed("e", 1)};
  EXPECT_THAT(parts_of(fuse(all, 80, nothing)), ElementsAre(2U, 1U, 1U, 1U, 1U));
  EXPECT_THAT(parts_of(fuse(all, 104, nothing)), ElementsAre(3U, 1U, 1U, 1U));
  EXPECT_THAT(parts_of(fuse(all, 1000, nothing)), ElementsAre(5U, 1U));
  EXPECT_THAT(parts_of(fuse(all, 0, nothing)), ElementsAre(1U, 1U, 1U, 1U, 1U, 1U));
}

TEST(Messages, CarryEverything) {
  AgreedOperation one{
      .signature = sum_of("x", {4, 5}, TensorType::bfloat16), .rows = {1, 0, 7}, .error = "e"};
  one.signature.root = 3;
  one.signature.reduction = Reduction::max;
  const auto back = decode<std::vector<AgreedOperation>>(encode(std::vector{one, one}));
  ASSERT_EQ(back.size(), 2U);
  EXPECT_EQ(back[1].signature, one.signature);
  EXPECT_EQ(back[1].rows, one.rows);
  EXPECT_EQ(back[1].error, "e");
  const auto asked =
      decode<std::vector<AskedOperation>>(encode(std::vector<AskedOperation>{{one.signature, 17}}));
  ASSERT_EQ(asked.size(), 1U);
  EXPECT_EQ(asked[0].waited_ns, 17);
}

TEST(Messages, ThatAreCutOffAreRefused) {
  const auto message = encode(std::vector{agreed("x", 3)});
  for (std::size_t length = 1; length < message.size(); ++length) {
    EXPECT_THROW(decode<std::vector<AgreedOperation>>(std::span(message).first(length)), Error);
  }
}

}  // namespace
}  // namespace forebay
