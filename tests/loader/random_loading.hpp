// Loading in ways made up at random: whatever the order, engine, strategy, roots and node layout,
// each rank has to get the samples that the order says, with the data's bytes.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "forebay/communicator.hpp"
#include "tests/loader/draw_data.hpp"

namespace forebay::test {

inline constexpr OrderName kOrders[] = {OrderName::strided, OrderName::grouped, OrderName::shuffled,
                                        OrderName::listed, OrderName::in_memory};
inline constexpr ReadEngine kEngines[] = {ReadEngine::automatic, ReadEngine::mmap,
                                          ReadEngine::pread, ReadEngine::uring};
/// Those that read extents, which every format has.
inline constexpr Strategy kExtentStrategies[] = {
    Strategy::automatic, Strategy::lmm_dio, Strategy::lmm_dio_prov, Strategy::lmm_dio_prov_coal,
    Strategy::lmm_dio_prov_coal_stag};

class RandomChoice {
 public:
  explicit RandomChoice(std::uint64_t seed) : random_(seed) {}
  std::uint64_t number(std::uint64_t least, std::uint64_t most) {
    return std::uniform_int_distribution<std::uint64_t>(least, most)(random_);
  }
  bool one_in(std::uint64_t n) { return number(1, n) == 1; }
  template <typename List>
  auto of(const List& list) {
    return std::begin(list)[number(0, std::size(list) - 1)];
  }

 private:
  std::mt19937_64 random_;
};

/// For order `listed`: some of `entries` samples, some of them several times.
inline SharedNumbers random_list(RandomChoice& choice, std::uint64_t entries) {
  std::vector<std::uint64_t> ids(choice.number(1, 2 * entries));
  for (auto& id : ids) id = choice.number(0, entries - 1);
  return std::make_shared<const std::vector<std::uint64_t>>(std::move(ids));
}

/// For order `grouped`: a size of groups of which each rank has one; of few samples, fewer `ranks`.
inline std::uint64_t random_group(RandomChoice& choice, std::uint64_t entries, int& ranks) {
  ranks = static_cast<int>(std::min<std::uint64_t>(static_cast<std::uint64_t>(ranks), entries));
  return choice.number(1, entries / static_cast<std::uint64_t>(ranks));
}

/// Options that are valid for `entries` samples on `ranks` ranks, of which an order may need fewer.
/// What is not made up stays as `options` have it.
inline LoaderOptions random_options(RandomChoice& choice, LoaderOptions options,
                                    std::uint64_t entries, int& ranks) {
  options.order = choice.of(kOrders);
  if (options.order == OrderName::in_memory) ranks = 1;
  if (options.order == OrderName::grouped) options.group = random_group(choice, entries, ranks);
  if (options.order == OrderName::listed) options.ids = random_list(choice, entries);
  options.batch = choice.number(static_cast<std::uint64_t>(ranks), 40);
  options.seed = choice.number(0, 1000);
  options.epochs = choice.number(1, 3);
  options.window = choice.number(1, 9);
  options.strategy = choice.of(kExtentStrategies);
  options.engine = choice.of(kEngines);
  options.buffers = static_cast<int>(choice.number(1, 3));
  options.decode_threads = static_cast<unsigned>(choice.number(0, 3));
  options.gap_bytes = choice.number(0, 1) * 4096;
  if (options.order == OrderName::strided) options.coalesce = choice.number(0, 7);
  options.roots = static_cast<int>(choice.number(0, 4)) - 1;
  if (options.roots != kEveryRank) options.stagger = static_cast<int>(choice.number(0, 2));
  return options;
}

/// Reads to the end in order `strided`.
inline void expect_strided(const DrawData& data, Loader& loader, int rank) {
  std::uint64_t iteration = 0;
  for (; const auto batch = loader.next(); ++iteration) {
    const Run run = loader.order().run(rank, iteration);
    ASSERT_EQ(batch->samples().size(), run.count);
    for (std::uint64_t k = 0; k < run.count; ++k) {
      const Sample& sample = batch->samples()[k];
      ASSERT_EQ(sample.id, loader.order().sample(run.first + k));
      ASSERT_EQ(text(sample.key), data.record(sample.id).key);
      ASSERT_EQ(text(sample.value), data.record(sample.id).value) << "sample " << sample.id;
    }
  }
  EXPECT_GT(iteration, 0U);
}

/// Reads to the end, which comes after `epochs` epochs of `order`.
inline void expect_drawn(const DrawData& data, Loader& loader, const OrderOptions& order,
                         std::uint64_t epochs, int rank) {
  for (std::uint64_t epoch = 0; epoch < epochs; ++epoch) {
    const EpochOrder expected(order, epoch);
    for (std::uint64_t step = 0; step < expected.steps(); ++step) {
      const auto batch = loader.next();
      ASSERT_TRUE(batch);
      data.expect_batch(expected, rank, step, *batch);
    }
  }
  EXPECT_FALSE(loader.next());
}

inline void expect_drawn(const DrawData& data, Loader& loader, const LoaderOptions& options,
                         int ranks, int rank) {
  expect_drawn(data, loader, data.order(options, ranks), options.epochs, rank);
}

/// Loads `data`, which are called `name`, in a way made up by `choice`; see random_options().
inline void load_at_random(RandomChoice& choice, const std::string& name, const DrawData& data,
                           const LoaderOptions& base) {
  int ranks = static_cast<int>(choice.number(1, 6));
  const LoaderOptions options = random_options(choice, base, data.entries(), ranks);
  const int per_node = static_cast<int>(choice.number(0, 4));
  SCOPED_TRACE(name + " ranks=" + std::to_string(ranks) + " per node=" + std::to_string(per_node) +
               " " + options.to_text());
  run_ranks(ranks, per_node, [&](const auto& comm) {
    Loader loader = Loader::open(comm, data.path(), options);
    ASSERT_EQ(loader.entries(), data.entries());
    if (options.order == OrderName::strided) return expect_strided(data, loader, comm->rank());
    expect_drawn(data, loader, options, ranks, comm->rank());
  });
}

/// Appends the ids of up to `most` batches to `ids`.
inline void take_ids(Loader& loader, int most, std::vector<std::uint64_t>& ids) {
  for (int i = 0; i < most; ++i) {
    const auto batch = loader.next();
    if (!batch) return;
    for (const Sample& sample : batch->samples()) ids.push_back(sample.id);
  }
}

/// Whether a run of one rank that stops after 13 iterations goes on there; gives the state then.
inline std::string expect_resumed(const std::string& path, const LoaderOptions& options) {
  constexpr int kAll = 1000;
  std::vector<std::uint64_t> whole, parts;
  Loader all = Loader::open(self_communicator(), path, options);
  take_ids(all, kAll, whole);
  std::string state;
  {
    Loader first = Loader::open(self_communicator(), path, options);
    take_ids(first, 13, parts);
    state = first.state();
  }
  Loader second = Loader::open(self_communicator(), path, resume_options(state, options, 1));
  take_ids(second, kAll, parts);
  EXPECT_EQ(parts, whole) << options.to_text();
  return state;
}

}  // namespace forebay::test
