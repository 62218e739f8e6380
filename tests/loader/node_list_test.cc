// What the roots of a node read for its ranks: every draw of every rank finds its sample where its
// buffer says, in a window that is not behind what is needed, and the parts of roots are the whole.
#include "loader/node_list.hpp"

#include <gtest/gtest.h>

#include <map>
#include <random>

#include "forebay/error.hpp"
#include "order/order_cost.hpp"

namespace forebay {
namespace {

struct Case {
  OrderOptions order;
  RunLimits limits;
  std::vector<int> ranks;  ///< of the node
  int roots = 1;
  DrawBuffers::Begin begin = DrawBuffers::Begin::whole;
  bool resumed = false;
};

/// By entry, what the roots put into `window`.
std::map<std::uint64_t, std::uint64_t> samples_of(std::vector<std::unique_ptr<NodeList>>& roots,
                                                  std::uint64_t window) {
  std::map<std::uint64_t, std::uint64_t> samples;
  std::uint64_t before = 0;
  for (auto& root : roots) {
    EXPECT_EQ(root->iterations(window), 1U);
    for (const SampleRun& run : root->runs({.window = window})) {
      EXPECT_TRUE(run.sample >= before || roots.size() > 1) << "in the order of the file";
      before = run.sample;
      for (std::uint64_t i = 0; i < run.count; ++i) {
        EXPECT_TRUE(samples.emplace(run.entry + i, run.sample + i).second) << "an entry is taken";
      }
    }
  }
  return samples;
}

void expect_served(const Case& of) {
  const DrawWindows windows(of.order, of.resumed);
  const auto list = [&](std::size_t own, int root) {
    return std::make_unique<NodeList>(
        of.order, RunEpochs(of.order, of.limits), windows,
        NodeShare{.ranks = of.ranks, .own = own, .root = root, .roots = of.roots}, of.begin);
  };
  std::vector<std::unique_ptr<NodeList>> roots, consumers;
  for (int root = 0; root < of.roots; ++root) roots.push_back(list(0, root));
  for (std::size_t own = 0; own < of.ranks.size(); ++own) consumers.push_back(list(own, -1));
  std::vector<std::uint64_t> number(of.ranks.size(), 0);
  std::map<std::uint64_t, std::map<std::uint64_t, std::uint64_t>> stage;
  RunEpochs epochs(of.order, of.limits);
  std::uint64_t loaded = 0, last = 0;
  while (const auto epoch = epochs.next()) {
    for (std::uint64_t step = epoch->begin; step < epoch->end; ++step) {
      std::uint64_t oldest = UINT64_MAX;
      const auto end = *consumers[0]->windows_for(epoch->order.epoch(), step);
      ASSERT_GE(end, last);
      last = end;
      for (; loaded < end; ++loaded) stage[loaded] = samples_of(roots, loaded);
      for (std::size_t own = 0; own < of.ranks.size(); ++own) {
        NodeList& consumer = *consumers[own];
        ASSERT_EQ(*consumer.windows_for(epoch->order.epoch(), step), end) << "one answer for all";
        const int rank = of.ranks[own];
        const Share share = epoch->order.share(rank, step);
        for (std::uint64_t draw = share.first; draw < share.first + share.count; ++draw) {
          while (!consumer.at(number[own])->serves(epoch->order.epoch(), draw)) ++number[own];
          consumer.forget(number[own], 0);
          const auto buffer = consumer.at(number[own]);
          ASSERT_LT(buffer->window, end);
          oldest = std::min(oldest, buffer->window);
          const std::uint64_t slot = epoch->order.place(rank, draw).slot;
          ASSERT_GE(slot, buffer->first_slot);
          ASSERT_LT(slot - buffer->first_slot, buffer->samples);
          ASSERT_EQ(stage[buffer->window].at(buffer->entry + slot - buffer->first_slot),
                    epoch->order.draw(rank, draw).sample);
        }
      }
      if (oldest != UINT64_MAX && of.begin == DrawBuffers::Begin::whole) {
        ASSERT_GE(oldest + static_cast<std::uint64_t>(windows.at_once()), end);
      }
      const auto most = windows.most_loaded() * of.ranks.size();
      for (const auto& [window, samples] : stage) {
        ASSERT_TRUE(samples.empty() || samples.rbegin()->first < most) << window;
      }
      if (oldest != UINT64_MAX) std::erase_if(stage, [&](auto& w) { return w.first + 4 < oldest; });
    }
  }
  EXPECT_EQ(roots[0]->iterations(last), 0U) << "nothing behind the end";
  for (auto& consumer : consumers) EXPECT_EQ(consumer->iterations(last), 0U);
}

Case random_case(std::mt19937_64& random) {
  const auto pick = [&](std::uint64_t least, std::uint64_t most) {
    return std::uniform_int_distribution(least, most)(random);
  };
  Case made;
  OrderOptions& order = made.order;
  order.order = pick(0, 1) == 0 ? OrderName::grouped : OrderName::shuffled;
  order.entries = pick(8, 300);
  order.ranks = static_cast<int>(pick(1, 6));
  order.batch = pick(static_cast<std::uint64_t>(order.ranks), 40);
  order.window = pick(1, 6);
  order.reuse = pick(0, 3) == 0 ? 2 : 1;
  constexpr OrderEnd kEnds[] = {OrderEnd::exact, OrderEnd::drop, OrderEnd::pad, OrderEnd::wrap};
  order.end = kEnds[pick(0, 3)];
  if (order.order == OrderName::grouped) {
    order.group = pick(1, order.entries / static_cast<std::uint64_t>(order.ranks));
  }
  const auto first = pick(0, static_cast<std::uint64_t>(order.ranks) - 1);
  for (std::uint64_t rank = first; rank < static_cast<std::uint64_t>(order.ranks); ++rank) {
    made.ranks.push_back(static_cast<int>(rank));
  }
  made.roots = static_cast<int>(pick(1, made.ranks.size()));
  made.limits.epochs = pick(1, 3);
  if (pick(0, 2) == 0) made.limits.iterations = pick(1, 20);
  if (pick(0, 1) == 0) made.begin = DrawBuffers::Begin::small;
  if (pick(0, 2) == 0) {
    const bool same = order.order == OrderName::grouped || pick(0, 1) == 0;
    made.limits.start.done.push_back({.ranks = same ? order.ranks : static_cast<int>(pick(1, 4)),
                                      .batch = same ? order.batch : pick(4, 20),
                                      .iterations = pick(1, 3)});
    made.resumed = true;
  }
  return made;
}

TEST(NodeList, EveryDrawOfEveryRankIsServed) {
  std::mt19937_64 random(5);
  int checked = 0;
  for (int round = 0; round < 600; ++round) {
    const Case made = random_case(random);
    try {
      RunEpochs(made.order, made.limits);
    } catch (const Error&) {
      continue;  // more was done than there is, or nothing makes a batch
    }
    ++checked;
    expect_served(made);
    ASSERT_FALSE(HasFatalFailure() || HasNonfatalFailure())
        << made.order.identity() << " batch " << made.order.batch << " on " << made.order.ranks
        << ", of the node " << made.ranks.size() << ", roots " << made.roots;
  }
  EXPECT_GT(checked, 300);
}

TEST(NodeList, ARankThatNeverGetsASampleLooksForNone) {
  OrderOptions order{.order = OrderName::shuffled, .entries = 3, .ranks = 4, .batch = 8};
  int without = 0;
  for (std::size_t own = 0; own < 4; ++own) {
    NodeList list(order, RunEpochs(order, {.start = {}}), DrawWindows(order, false),
                  {.ranks = {0, 1, 2, 3}, .own = own, .root = 0, .roots = 1});
    if (!list.at(0)) ++without;  // of a run without an end
    for (std::uint64_t epoch = 0; epoch < 100; ++epoch) {
      const std::uint64_t end = *list.windows_for(epoch, 0);
      ASSERT_EQ(end, epoch + 1);
      list.forget(0, end - 1);
    }
  }
  EXPECT_EQ(without, 1);
}

TEST(NodeList, AUnitThatIsResumedAndTheFirstOfWrapFitAWindow) {
  OrderOptions order{.order = OrderName::grouped, .entries = 140, .ranks = 5, .batch = 10};
  order.seed = 227;
  order.window = 1;
  order.end = OrderEnd::wrap;
  order.bounds = std::make_shared<const std::vector<std::uint64_t>>(std::vector<std::uint64_t>{
      0, 3, 5, 6, 9, 12, 15, 48, 51, 52, 54, 82, 84, 86, 96, 99, 100, 137, 138, 140});
  RunLimits limits{.start = {.epoch = 0, .done = {{.ranks = 5, .batch = 10, .iterations = 18}}},
                   .epochs = 1};
  NodeList list(order, RunEpochs(order, limits), DrawWindows(order, true),
                {.ranks = {0, 1, 2, 3, 4}, .own = 0, .root = 0, .roots = 1});
  std::uint64_t window = 0;
  for (; list.iterations(window) > 0; ++window) list.runs({.window = window});
  EXPECT_GT(window, 0U);
}

TEST(NodeList, TheFirstBatchNeedNotWaitForAWholeWindow) {
  OrderOptions order{.order = OrderName::shuffled, .entries = 1000, .ranks = 2, .batch = 20};
  order.window = 12;
  NodeList list(order, RunEpochs(order, {.start = {}, .epochs = 1}), DrawWindows(order, false),
                {.ranks = {0, 1}, .own = 1, .root = 0, .roots = 1}, DrawBuffers::Begin::small);
  std::vector<std::uint64_t> samples;
  for (std::uint64_t window = 0; list.iterations(window) > 0; ++window) {
    std::uint64_t count = 0;
    for (const SampleRun& run : list.runs({.window = window})) count += run.count;
    samples.push_back(count);
  }
  EXPECT_EQ(samples, (std::vector<std::uint64_t>{20, 20, 40, 80, 80, 240, 240, 240, 40}));
}

TEST(NodeList, ASampleThatTwoRanksWantIsThereForBoth) {
  OrderOptions order{.order = OrderName::shuffled, .entries = 3, .ranks = 2, .batch = 4};
  order.end = OrderEnd::wrap;
  NodeList list(order, RunEpochs(order, {.start = {}, .epochs = 1}), DrawWindows(order, false),
                {.ranks = {0, 1}, .own = 0, .root = 0, .roots = 1});
  std::uint64_t count = 0;
  ASSERT_EQ(list.iterations(0), 1U);
  for (const SampleRun& run : list.runs({.window = 0})) count += run.count;
  EXPECT_EQ(count, 4U) << "of 3 samples";
}

}  // namespace
}  // namespace forebay
