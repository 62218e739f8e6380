// Random orders, and what all ranks together draw of an epoch.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "forebay/epoch_order.hpp"
#include "forebay/error.hpp"

namespace forebay::test {

class Random {
 public:
  explicit Random(std::uint64_t seed) : engine_(seed) {}
  std::uint64_t between(std::uint64_t low, std::uint64_t high) {
    return low + engine_() % (high - low + 1);
  }
  template <typename T>
  T one_of(std::initializer_list<T> choices) {
    return *(choices.begin() + between(0, choices.size() - 1));
  }

 private:
  std::mt19937_64 engine_;
};

inline SharedNumbers numbers(std::vector<std::uint64_t> values) {
  return std::make_shared<const std::vector<std::uint64_t>>(std::move(values));
}

/// Cuts 0..entries in up to `most` uneven parts.
inline SharedNumbers random_bounds(Random& random, std::uint64_t entries, std::uint64_t most) {
  std::vector<std::uint64_t> bounds{0, entries};
  for (std::uint64_t i = 1; i < most; ++i) bounds.push_back(random.between(0, entries));
  std::ranges::sort(bounds);
  bounds.erase(std::unique(bounds.begin(), bounds.end()), bounds.end());
  return numbers(std::move(bounds));
}

inline SharedNumbers random_list(Random& random, std::uint64_t entries) {
  std::vector<std::uint64_t> list(random.between(1, 2 * entries));
  for (auto& sample : list) sample = random.between(0, entries - 1);
  return numbers(std::move(list));
}

inline bool is_possible(const OrderOptions& options) {
  try {
    EpochOrder(options, 0);
    return true;
  } catch (const Error&) {
    return false;
  }
}

/// An order that validates on `ranks` ranks, over small numbers, where the odd cases are.
inline OrderOptions random_order(Random& random, OrderName kind, int ranks, bool reuse) {
  OrderOptions options;
  options.order = kind;
  options.ranks = ranks;
  const auto p = static_cast<std::uint64_t>(ranks);
  options.batch = random.between(p, p + 20);
  options.entries = random.between(1, 200);
  options.seed = random.between(0, 1000);
  options.end = random.one_of({OrderEnd::pad, OrderEnd::wrap, OrderEnd::exact, OrderEnd::drop});
  options.window = random.between(1, 5);
  options.keep = random.between(1, std::min<std::uint64_t>(options.entries, 9));
  options.ratio = static_cast<double>(random.between(1, 10)) / 10;
  if (reuse) {
    options.reuse = random.between(2, 4);
    options.reuse_scope =
        random.one_of({ReuseScope::process, ReuseScope::node, ReuseScope::global});
    options.ranks_per_node = static_cast<int>(random.between(0, 3));
  }
  if (kind == OrderName::listed) options.ids = random_list(random, options.entries);
  if (kind == OrderName::grouped) {
    options.entries = std::max(options.entries, p);
    options.group = random.between(1, options.entries / p);
    if (reuse && options.reuse_scope != ReuseScope::process) {
      options.batch = p * random.between(1, 5);
    } else if (random.between(0, 2) == 0) {
      options.group = 0;
      do options.bounds = random_bounds(random, options.entries, options.entries);
      while (options.bounds->size() <= p);
    }
  }
  if (kind == OrderName::in_memory) {
    if (reuse) options.reuse_scope = ReuseScope::global;
    options.entries = std::max<std::uint64_t>(options.entries, 10);
    // At least one unit fits in memory.
    const double fits = options.ratio * static_cast<double>(options.entries);
    options.group = random.between(0, static_cast<std::uint64_t>(fits));
    if (random.between(0, 1) == 0) {
      OrderOptions files = options;
      files.group = 0;
      files.bounds = random_bounds(random, options.entries, options.entries);
      if (is_possible(files)) options = files;
    }
  }
  const std::uint64_t samples = options.ids ? options.ids->size() : options.entries;
  if (options.end == OrderEnd::drop && samples < 2 * options.batch) options.end = OrderEnd::exact;
  if (!is_possible(options)) options.end = OrderEnd::wrap;
  return options;
}

/// How often each sample is delivered in an epoch.
using Counts = std::map<std::uint64_t, std::uint64_t>;

inline Counts wanted(const OrderOptions& options) {
  Counts counts;
  if (options.ids) {
    for (const std::uint64_t sample : *options.ids) counts[sample] += options.reuse;
  } else {
    for (std::uint64_t i = 0; i < options.entries; ++i) counts[i] = options.reuse;
  }
  return counts;
}

struct Drawn {
  Counts samples;  ///< without repeats
  std::uint64_t deliveries = 0;
  std::uint64_t repeats = 0;
};

/// All draws of all ranks from iteration `from` up to `end`.
inline Drawn draw_all(const EpochOrder& order, std::uint64_t from, std::uint64_t end) {
  Drawn drawn;
  for (int rank = 0; rank < order.options().ranks; ++rank) {
    for (std::uint64_t iteration = from; iteration < end; ++iteration) {
      const Share share = order.share(rank, iteration);
      for (std::uint64_t i = 0; i < share.count; ++i) {
        const Draw draw = order.draw(rank, share.first + i);
        EXPECT_EQ(draw.repeat, i >= share.valid);
        EXPECT_LT(draw.position, order.size());
        if (draw.repeat) {
          ++drawn.repeats;
        } else {
          ++drawn.deliveries;
          ++drawn.samples[draw.sample];
        }
      }
    }
  }
  return drawn;
}

inline void add(Counts& to, const Counts& more) {
  for (const auto& [sample, count] : more) to[sample] += count;
}

/// Whether no sample of `part` comes up more often than in `whole`.
inline bool within(const Counts& part, const Counts& whole) {
  return std::ranges::all_of(part, [&](const auto& one) {
    const auto found = whole.find(one.first);
    return found != whole.end() && one.second <= found->second;
  });
}

inline constexpr OrderName kAllKinds[] = {OrderName::grouped, OrderName::shuffled,
                                          OrderName::in_memory, OrderName::listed};

/// Calls `check` with `count` random orders of every kind, half of them with reuse.
template <typename Check>
void for_random_orders(std::uint64_t seed, int count, Check check) {
  Random random(seed);
  for (int i = 0; i < count; ++i) {
    for (const OrderName kind : kAllKinds) {
      if (testing::Test::HasFailure()) return;
      const int ranks = static_cast<int>(random.between(1, 8));
      const OrderOptions options = random_order(random, kind, ranks, i % 2 == 1);
      SCOPED_TRACE(options.identity() + " P=" + std::to_string(ranks) +
                   " B=" + std::to_string(options.batch));
      check(options, random);
    }
  }
}

}  // namespace forebay::test
