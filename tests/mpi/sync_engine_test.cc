// The engine over real MPI, against MPI_Allreduce: exactly for whole numbers, within one unit in
// the last place for each rank for others.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <numeric>
#include <random>

#include "forebay/mpi.hpp"
#include "forebay/sync.hpp"
#include "tests/mpi/world.hpp"
#include "tests/support/sync_contract.hpp"

namespace forebay {
namespace {

struct Way {
  const char* name;
  const char* strategy;
  std::uint64_t fusion_bytes;
};

class MpiEngine : public ::testing::TestWithParam<Way> {
 protected:
  SyncOptions options() const {
    return {.strategy = find_sync_way(GetParam().strategy),
            .cycle = std::chrono::microseconds(500),
            .fusion_bytes = GetParam().fusion_bytes};
  }
};

INSTANTIATE_TEST_SUITE_P(Ways, MpiEngine,
                         ::testing::Values(Way{"negotiate", "negotiate", 64 << 20},
                                           Way{"negotiate_alone", "negotiate", 0},
                                           Way{"gs", "gs", 100'000}, Way{"nbcs", "nbcs", 64 << 20},
                                           Way{"topo", "topo", 64 << 20},
                                           Way{"topo_alone", "topo", 0}),
                         [](const auto& way) { return std::string(way.param.name); });

template <typename T>
struct Plain;
template <>
struct Plain<float> {
  static constexpr TensorType type = TensorType::float32;
  static MPI_Datatype mpi() { return MPI_FLOAT; }
};
template <>
struct Plain<double> {
  static constexpr TensorType type = TensorType::float64;
  static MPI_Datatype mpi() { return MPI_DOUBLE; }
};
template <>
struct Plain<std::int32_t> {
  static constexpr TensorType type = TensorType::int32;
  static MPI_Datatype mpi() { return MPI_INT32_T; }
};
template <>
struct Plain<std::int64_t> {
  static constexpr TensorType type = TensorType::int64;
  static MPI_Datatype mpi() { return MPI_INT64_T; }
};

template <typename T>
std::vector<T> any_numbers(std::size_t count, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  std::vector<T> numbers(count);
  for (T& number : numbers) {
    if constexpr (std::is_integral_v<T>) {
      number = static_cast<T>(random() >> 34) - (1 << 28);
    } else {
      number = static_cast<T>(random() % 1'000'003) / T(1'000'003) + T(0.5);
    }
  }
  return numbers;
}

template <typename T>
void expect_close(const std::vector<T>& got, const std::vector<T>& plain, int ranks,
                  std::size_t elements) {
  std::size_t wrong = 0;
  for (std::size_t i = 0; i < plain.size(); ++i) {
    if constexpr (std::is_integral_v<T>) {
      wrong += got[i] != plain[i] ? 1 : 0;
    } else {
      const T unit = std::nextafter(plain[i], std::numeric_limits<T>::infinity()) - plain[i];
      wrong += std::abs(got[i] - plain[i]) > static_cast<T>(ranks) * unit ? 1 : 0;
    }
  }
  EXPECT_EQ(wrong, 0U) << "of " << elements;
}

template <typename T>
void compare(SyncEngine& engine, std::span<const std::size_t> sizes, Reduction reduction,
             MPI_Op op) {
  const auto world = test::world();
  struct One {
    std::vector<T> in;
    std::vector<T> out;
    SyncHandle handle;
  };
  for (std::uint64_t step = 0; step < 2; ++step) {
    std::vector<One> all(sizes.size());
    for (std::size_t i = 0; i < sizes.size(); ++i) {
      all[i].in = any_numbers<T>(sizes[i], mix_key({step, i, std::uint64_t(world->rank())}));
      all[i].out.resize(sizes[i]);
      const TensorSpec tensor{.name = std::string(to_string(Plain<T>::type)) +
                                      std::string(to_string(reduction)) + std::to_string(i),
                              .type = Plain<T>::type,
                              .shape = {sizes[i]}};
      all[i].handle = engine.allreduce(tensor, std::as_bytes(std::span(all[i].in)),
                                       std::as_writable_bytes(std::span(all[i].out)), reduction);
    }
    engine.end_step();
    for (auto& one : all) {
      std::vector<T> plain(one.in.size());
      MPI_Allreduce(one.in.data(), plain.data(), static_cast<int>(one.in.size()), Plain<T>::mpi(),
                    op, MPI_COMM_WORLD);
      one.handle.wait();
      expect_close(one.out, plain, world->size(), one.in.size());
    }
  }
}

TEST_P(MpiEngine, GivesWhatMpiAllreduceGives) {
  constexpr std::size_t kSizes[] = {0, 1, 3, 1000, 65'537, 300'000};
  SyncEngine engine(test::world(), options());
  compare<float>(engine, kSizes, Reduction::sum, MPI_SUM);
  compare<double>(engine, kSizes, Reduction::sum, MPI_SUM);
  compare<std::int32_t>(engine, kSizes, Reduction::sum, MPI_SUM);
  compare<std::int64_t>(engine, kSizes, Reduction::sum, MPI_SUM);
  compare<float>(engine, kSizes, Reduction::max, MPI_MAX);
  compare<std::int64_t>(engine, kSizes, Reduction::min, MPI_MIN);
  engine.close();
}

/// 100 MB, which is longer than a buffer.
TEST(MpiEngineLarge, GivesWhatMpiAllreduceGives) {
  if (test::world()->size() > 4) GTEST_SKIP() << "too much memory for small machines";
  constexpr std::size_t kSizes[] = {25'000'000, 10};
  for (const char* strategy : {"nbcs", "topo"}) {
    SyncEngine engine(test::world(), {.strategy = find_sync_way(strategy)});
    compare<float>(engine, kSizes, Reduction::sum, MPI_SUM);
  }
}

TEST_P(MpiEngine, SumsSixteenBits) {
  const auto world = test::world();
  SyncEngine engine(world, options());
  for (std::uint64_t step = 0; step < 2; ++step) {
    std::vector<test::OneSum> sums;
    for (const TensorType type : {TensorType::float16, TensorType::bfloat16}) {
      for (const Reduction reduction : test::kAllReductions) {
        sums.push_back(
            {.tensor = {.name = std::string(to_string(type)) + std::string(to_string(reduction)),
                        .type = type,
                        .shape = {5001}},
             .reduction = reduction});
      }
    }
    for (auto& sum : sums) sum.start(engine, world->rank(), step);
    for (auto& sum : sums) sum.expect(step, world->size(), world->size());
  }
}

TEST_P(MpiEngine, BroadcastsGathersMeetsAndJoins) {
  const auto world = test::world();
  SyncEngine engine(world, options());
  const TensorSpec weights{.name = "weights", .shape = {50'000}};
  auto data = test::numbers_of(weights, world->rank(), 0);
  engine.broadcast(weights, data, world->size() - 1).wait();
  EXPECT_EQ(data, test::numbers_of(weights, world->size() - 1, 0));

  const auto rows = static_cast<std::uint64_t>(world->rank());
  const TensorSpec part{.name = "part", .type = TensorType::int32, .shape = {rows, 3}};
  const auto mine = test::numbers_of(part, world->rank(), 1);
  const auto gathered = engine.allgather(part, mine);
  gathered.wait();
  EXPECT_EQ(gathered.gathered_rows(),
            static_cast<std::uint64_t>(world->size() * (world->size() - 1) / 2));
  engine.barrier("here").wait();

  // The first ranks have the most steps.
  for (int step = 0; step < 3 + (world->size() - 1 - world->rank()); ++step) {
    test::OneSum sum{.tensor = {.name = "sum", .shape = {100}}};
    sum.start(engine, world->rank(), static_cast<std::uint64_t>(step));
    sum.expect(static_cast<std::uint64_t>(step),
               step < 3 ? world->size() : world->size() - 1 - (step - 3), world->size());
    engine.end_step();
  }
  EXPECT_TRUE(engine.join().wait_for(std::chrono::seconds(60)));
}

/// Every rank in an order of its own.
TEST_P(MpiEngine, TakesMoreNamesThanItKnows) {
  const auto world = test::world();
  auto options = this->options();
  options.cache_capacity = 16;
  SyncEngine engine(world, options);
  std::mt19937 random(static_cast<unsigned>(world->rank()));
  std::vector<test::OneSum> sums(1000);
  std::vector<std::size_t> order(sums.size());
  std::iota(order.begin(), order.end(), 0);
  for (std::size_t i = 0; i < sums.size(); ++i) {
    sums[i].tensor = {.name = "layer." + std::to_string(i), .shape = {1 + i % 20}};
  }
  for (std::uint64_t step = 0; step < 2; ++step) {
    std::ranges::shuffle(order, random);
    for (const auto i : order) sums[i].start(engine, world->rank(), step);
    for (auto& sum : sums) sum.expect(step, world->size(), world->size());
  }
}

TEST_P(MpiEngine, NamesRanksWhoseShapesDiffer) {
  const auto world = test::world();
  if (world->size() == 1) GTEST_SKIP();
  SyncEngine engine(world, options());
  const TensorSpec good{.name = "conv1", .shape = {3, 4}};
  for (const std::uint64_t step : {0, 1, 2}) {
    test::OneSum sum{.tensor = good};
    sum.start(engine, world->rank(), step);
    sum.expect(step, world->size(), world->size());
    test::OneSum odd{.tensor =
                         world->rank() == 1 ? TensorSpec{.name = "conv1", .shape = {4}} : good};
    odd.start(engine, world->rank(), step);
    try {
      odd.handle.wait();
      ADD_FAILURE() << "summed";
    } catch (const Error& error) {
      const std::string text = error.what();
      EXPECT_NE(text.find("[4] on rank 1"), std::string::npos) << text;
      EXPECT_NE(text.find("[3, 4] on rank"), std::string::npos) << text;
    }
  }
}

}  // namespace
}  // namespace forebay
