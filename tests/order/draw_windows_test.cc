// Windows of several ranks: whatever the order, ranks and shares, three of them hold what an
// iteration needs, and a rank loads no more in one than is said.
#include "order/draw_windows.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>

#include "order/order_cost.hpp"

namespace forebay {
namespace {

TEST(DrawWindows, AreThoseOfTheOrderWhereItHasSome) {
  OrderOptions options{.order = OrderName::shuffled, .entries = 1000, .ranks = 3, .batch = 10};
  options.window = 4;
  const DrawWindows windows(options, false);
  EXPECT_EQ(windows.begin(3), 12U);
  EXPECT_EQ(windows.at(11), 2U);
  EXPECT_EQ(windows.at(12), 3U);
  EXPECT_EQ(windows.count(13), 4U);
  EXPECT_EQ(windows.count(12), 3U);
  EXPECT_EQ(windows.count(0), 0U);
  EXPECT_EQ(windows.at_once(), 1);
  EXPECT_EQ(windows.most_loaded(), most_loaded(options, false));
}

TEST(DrawWindows, FollowUnitsThatEndInsideOfABatch) {
  OrderOptions options{.order = OrderName::grouped, .entries = 1000, .ranks = 2, .batch = 20};
  options.group = 25;
  const DrawWindows windows(options, false);
  const std::uint64_t begins[] = {0, 2, 5, 7, 10};
  for (std::uint64_t window = 0; window < std::size(begins); ++window) {
    EXPECT_EQ(windows.begin(window), begins[window]);
    EXPECT_EQ(windows.at(begins[window]), window);
    if (window > 0) {
      EXPECT_EQ(windows.at(begins[window] - 1), window - 1);
    }
  }
}

/// What a rank has to load, and from when until when it serves.
void expect_enough(const OrderOptions& options, bool resumed, const EpochOrder& order) {
  const DrawWindows windows(options, resumed);
  for (int rank = 0; rank < options.ranks; ++rank) {
    const std::uint64_t share = (static_cast<std::uint64_t>(rank) + 1) * options.batch /
                                    static_cast<std::uint64_t>(options.ranks) -
                                static_cast<std::uint64_t>(rank) * options.batch /
                                    static_cast<std::uint64_t>(options.ranks);
    std::map<std::uint64_t, std::uint64_t> loaded;
    for (auto buffer = order.first_buffer(rank, 0); buffer;
         buffer = order.next_buffer(rank, *buffer)) {
      if (buffer->count == 0) continue;
      const std::uint64_t last = order.steps() - 1;
      const std::uint64_t begin = std::min(buffer->first / share, last);
      const std::uint64_t end = std::min((buffer->first + buffer->count - 1) / share, last);
      const std::uint64_t window = windows.at(begin);
      ASSERT_LT(windows.at(end), window + static_cast<std::uint64_t>(windows.at_once()));
      for (const Run& run : buffer->loads) loaded[window] += run.count;
    }
    for (const auto& [window, samples] : loaded) {
      ASSERT_LE(samples, windows.most_loaded());
      ASSERT_LT(window, windows.count(order.steps()));
    }
  }
}

TEST(DrawWindows, HoldWhatAnIterationNeeds) {
  std::mt19937_64 random(11);
  const auto pick = [&](std::uint64_t least, std::uint64_t most) {
    return std::uniform_int_distribution(least, most)(random);
  };
  constexpr OrderEnd kEnds[] = {OrderEnd::exact, OrderEnd::drop, OrderEnd::pad, OrderEnd::wrap};
  int checked = 0;
  for (int round = 0; round < 3000; ++round) {
    OrderOptions options;
    options.order = pick(0, 1) == 0 ? OrderName::grouped : OrderName::shuffled;
    options.entries = pick(8, 600);
    options.ranks = static_cast<int>(pick(1, 6));
    options.batch = pick(static_cast<std::uint64_t>(options.ranks), 60);
    options.window = pick(1, 6);
    options.reuse = pick(0, 3) == 0 ? pick(2, 3) : 1;
    options.end = kEnds[pick(0, 3)];
    options.seed = pick(0, 100);
    const auto ranks = static_cast<std::uint64_t>(options.ranks);
    if (options.order == OrderName::grouped) {
      options.group = pick(1, options.entries / ranks);
      if (pick(0, 2) == 0) {
        std::vector<std::uint64_t> bounds{0};
        while (bounds.back() < options.entries) {
          bounds.push_back(std::min(options.entries, bounds.back() + pick(1, options.group)));
        }
        options.bounds = std::make_shared<const std::vector<std::uint64_t>>(bounds);
      }
    }
    // Whoever takes over units that others have begun loads many in a row: not together.
    std::vector<Segment> done;
    if (pick(0, 2) == 0 && options.order != OrderName::grouped) {
      done.push_back(
          {.ranks = static_cast<int>(pick(1, 4)), .batch = pick(4, 20), .iterations = 1});
    }
    std::optional<EpochOrder> order;
    try {
      order.emplace(options, pick(0, 2), done);
    } catch (const Error&) {
      continue;
    }
    if (order->steps() == 0) continue;
    ++checked;
    expect_enough(options, !done.empty(), *order);
    ASSERT_FALSE(HasFatalFailure()) << options.identity() << " batch " << options.batch << " on "
                                    << options.ranks << ", " << done.size() << " segments";
  }
  EXPECT_GT(checked, 1500);
}

}  // namespace
}  // namespace forebay
