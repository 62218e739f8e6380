// The parts that topo is made of: records of steps, plans of what they show, slots, runs.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "sync/plan_maker.hpp"
#include "sync/plan_run.hpp"
#include "sync/step_record.hpp"

namespace forebay {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::SizeIs;

std::shared_ptr<Request> request(const std::string& name, std::uint64_t floats = 4) {
  return std::make_shared<Request>(Request{.tensor = {.name = name, .shape = {floats}},
                                           .state = std::make_shared<SyncHandle::State>()});
}

/// Steps of one rank, as text: "a b | c" is two steps; "a! b" starts b when a was seen done.
std::vector<StepRecord> records_of(const std::string& steps) {
  StepRecorder recorder;
  std::string name;
  std::shared_ptr<Request> last;
  const auto start = [&] {
    if (name.empty()) return;
    last = request(name);
    recorder.start(*last);
    name.clear();
  };
  for (const char c : steps + " ") {
    if (c != ' ' && c != '|' && c != '!') {
      name += c;
      continue;
    }
    start();
    if (c == '!') {
      last->state->finish();
      last->state->look();
    }
    if (c == '|') recorder.end_step();
  }
  recorder.end_step();
  return recorder.take_ended();
}

std::vector<std::string> names_of(const StepRecord& record) {
  std::vector<std::string> names;
  for (const auto& started : record) names.push_back(started.tensor.name);
  return names;
}

std::vector<std::vector<std::string>> names_of(const TransferPlan& plan) {
  std::vector<std::vector<std::string>> names;
  for (const auto& buffer : plan.buffers) {
    names.emplace_back();
    for (const auto& tensor : buffer) names.back().push_back(tensor.name);
  }
  return names;
}

TEST(StepRecorder, ANameThatComesAgainBeginsAStep) {
  const auto records = records_of("a b c b a | a");
  ASSERT_THAT(records, SizeIs(3));
  EXPECT_THAT(names_of(records[0]), ElementsAre("a", "b", "c"));
  EXPECT_THAT(names_of(records[1]), ElementsAre("b", "a"));
  EXPECT_EQ(records[2][0].ordinal, 3U);
}

TEST(StepRecorder, KnowsWhatWasSeenBeforeWhat) {
  const auto record = records_of("a b! c d! e").at(0);
  EXPECT_EQ(record[1].seen_at, 1U);
  EXPECT_EQ(record[2].glimpse, 1U);
  EXPECT_EQ(record[3].seen_at, 2U);
  EXPECT_EQ(record[0].seen_at, 0U);
  EXPECT_EQ(decode<StepRecord>(encode(record))[3].seen_at, 2U);
}

TEST(MergedStep, OrdersByWhenRanksHaveStartedAndKeepsWhatTheySaw) {
  const std::vector<StepRecord> ranks{records_of("a b c! d").at(0), records_of("b a c d").at(0),
                                      records_of("b a c d").at(0)};
  const auto merged = merge(ranks);
  ASSERT_TRUE(merged);
  const TransferPlan plan = plan_transfers(merged->graph, {}, 1000);
  EXPECT_THAT(names_of(plan), ElementsAre(ElementsAre("b", "a", "c"), ElementsAre("d")));
}

TEST(MergedStep, IsNoneWhereRanksDiffer) {
  const auto of = [](const std::string& first, const std::string& second, std::size_t step) {
    return merge(std::vector{records_of(first).at(step), records_of(second).at(step)});
  };
  EXPECT_TRUE(of("a b", "b a", 0));
  EXPECT_FALSE(of("a b", "a c", 0));
  EXPECT_FALSE(of("a b", "a", 0));
  EXPECT_FALSE(of("a | a b", "b | a b", 1)) << "b is the second on one rank alone";
}

TEST(PlanMaker, TakesTheFirstStepAndLaterOnlyWhatComesTwiceOrIsKnown) {
  PlanMaker maker(1, 1000);
  const auto first = maker.take(0, records_of("a b").at(0), nullptr);
  ASSERT_TRUE(first);
  const PlanProposal copy = decode<PlanProposal>(encode(*first));
  EXPECT_EQ(copy.plan.digest, first->plan.digest);
  EXPECT_EQ(copy.start.ordinals, first->start.ordinals);
  const PlanTable last(first->plan);
  maker.clear();
  const auto records = records_of("a b x | a b y | a b y | b a");
  EXPECT_FALSE(maker.take(0, records[0], &last));
  EXPECT_FALSE(maker.take(0, records[1], &last));
  const auto twice = maker.take(0, records[2], &last);
  ASSERT_TRUE(twice);
  EXPECT_EQ(twice->start.step, 3U);
  EXPECT_EQ(twice->start.ordinals.at("y"), 2U);
  const auto known = maker.take(0, records[3], &last);
  ASSERT_TRUE(known);
  EXPECT_EQ(known->plan.digest, first->plan.digest);
}

std::shared_ptr<const PlanTable> table_of(const std::vector<std::vector<std::string>>& buffers) {
  TransferPlan plan;
  for (const auto& buffer : buffers) {
    plan.buffers.emplace_back();
    for (const auto& name : buffer) plan.buffers.back().push_back({.name = name, .shape = {4}});
  }
  return std::make_shared<const PlanTable>(std::move(plan));
}

void put(PlanRun& run, const std::string& name) {
  const auto one = request(name);
  run.slots().put(*run.table().find(*one), one);
}

std::vector<std::string> parts_of(const std::optional<Transfer>& transfer) {
  std::vector<std::string> names;
  if (!transfer) return {"none"};
  for (const auto& part : transfer->parts) {
    names.push_back(part.request == nullptr ? "-" : part.request->tensor.name);
  }
  return names;
}

TEST(PlanTable, KnowsOnlyWhatIsExactlyAsPlanned) {
  const auto table = table_of({{"a"}, {"b", "c"}});
  EXPECT_EQ(table->find(*request("c"))->slot, 1U);
  EXPECT_FALSE(table->find(*request("x")));
  EXPECT_FALSE(table->find(*request("c", 5)));
  Request other = *request("c");
  other.reduction = Reduction::max;
  EXPECT_FALSE(table->find(other));
  other = *request("c");
  other.operation = SyncOperation::broadcast;
  EXPECT_FALSE(table->find(other));
}

TEST(PlanRun, IssuesBuffersInTheirOrderHoweverRequestsCome) {
  PlanRun run(std::make_shared<Slots>(table_of({{"a", "b"}, {"c"}})), {});
  put(run, "c");
  put(run, "b");
  EXPECT_FALSE(run.ready());
  EXPECT_EQ(run.missing(), "a");
  put(run, "a");
  EXPECT_THAT(parts_of(run.issue()), ElementsAre("a", "b"));
  put(run, "a");  // of the next step already
  EXPECT_THAT(parts_of(run.issue()), ElementsAre("c"));
  EXPECT_EQ(run.rounds(), 1U);
  EXPECT_FALSE(run.ready());
  EXPECT_THAT(parts_of(run.issue_neutral()), ElementsAre("-", "-"));
  EXPECT_EQ(run.issued(), 3U);
  EXPECT_EQ(run.slots().filled(), 1U) << "what is there stays there";
}

TEST(PlanRun, BeginsInTheMiddleOfAStep) {
  PlanRun run(std::make_shared<Slots>(table_of({{"a", "b"}, {"c"}, {"d", "e"}})), {"b", "c"});
  put(run, "b");  // of the next step
  EXPECT_FALSE(run.ready());
  put(run, "a");
  EXPECT_THAT(parts_of(run.issue()), ElementsAre("a"));
  put(run, "d");
  put(run, "e");
  EXPECT_THAT(parts_of(run.issue()), ElementsAre("d", "e"));
  EXPECT_EQ(run.rounds(), 1U);
  put(run, "a");
  EXPECT_THAT(parts_of(run.issue()), ElementsAre("a", "b"));
  EXPECT_EQ(run.issued(), 3U);
}

TEST(Slots, AWithdrawnRequestIsNotTaken) {
  const auto table = table_of({{"a", "b"}});
  Slots slots(table);
  const auto a = request("a"), b = request("b");
  slots.put(*table->find(*a), a);
  EXPECT_EQ(slots.withdraw(*table->find(*a)), a);
  EXPECT_EQ(slots.withdraw(*table->find(*a)), nullptr);
  slots.put(*table->find(*b), b);
  EXPECT_FALSE(slots.full(0, {}));
  EXPECT_THAT(slots.take_all(), ElementsAre(b));
}

TEST(Slots, ManyCallersFillThemAndOneOfThemWakes) {
  constexpr int kCallers = 4, kRounds = 200;
  std::vector<std::vector<std::string>> buffers(1);
  for (int i = 0; i < kCallers; ++i) buffers[0].push_back("t" + std::to_string(i));
  PlanRun run(std::make_shared<Slots>(table_of(buffers)), {});
  std::atomic<int> issued = 0, wakes = 0;
  std::vector<std::jthread> callers;
  for (int i = 0; i < kCallers; ++i) {
    callers.emplace_back([&, i] {
      for (int round = 0; round < kRounds; ++round) {
        const auto one = request("t" + std::to_string(i));
        if (run.slots().put(*run.table().find(*one), one)) ++wakes;
        while (issued <= round) std::this_thread::yield();
      }
    });
  }
  for (int round = 0; round < kRounds; ++round) {
    while (wakes <= round) std::this_thread::yield();
    ASSERT_THAT(parts_of(run.issue()), ElementsAre("t0", "t1", "t2", "t3"));
    ++issued;
  }
  callers.clear();
  EXPECT_EQ(wakes, kRounds);
}

}  // namespace
}  // namespace forebay
