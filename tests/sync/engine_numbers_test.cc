// The engine on ranks as threads: bit by bit the same, and how far from exact with 16 bits.
#include <gtest/gtest.h>

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <mutex>
#include <random>
#include <thread>

#include "forebay/sync.hpp"
#include "tests/support/scale.hpp"
#include "tests/support/summation_contract.hpp"

namespace forebay {
namespace {

constexpr const char* kStrategies[] = {"negotiate", "gs", "nbcs", "topo"};

struct Layout {
  int ranks;
  int ranks_per_node;
};

using Bytes = std::vector<std::byte>;

/// Fractions of all sizes, whose sum depends on the order in which they are added.
Bytes fractions(const TensorSpec& tensor, int rank, unsigned seed) {
  Bytes bytes(tensor.bytes());
  for (std::uint64_t i = 0; i < tensor.elements(); ++i) {
    const double value = test::number_of(TensorType::float64, rank, i, seed);
    test::put_number(
        tensor.type, bytes.data() + i * size_of(tensor.type),
        std::ldexp(value, static_cast<int>((i + static_cast<std::uint64_t>(rank)) % 9)));
  }
  return bytes;
}

/// Results of all tensors, by name and step.
using Results = std::map<std::string, Bytes>;

/// Some steps of tensors of several types, in an order of each rank's own, from two threads.
Results run_steps(const std::shared_ptr<Communicator>& comm, const SyncOptions& options,
                  std::uint64_t seed) {
  constexpr TensorType kTypes[] = {TensorType::float32, TensorType::float64, TensorType::float16,
                                   TensorType::bfloat16};
  SyncEngine engine(comm, options);
  std::mt19937_64 random(mix_key({seed, static_cast<std::uint64_t>(comm->rank())}));
  Results results;
  for (unsigned step = 0; step < 3; ++step) {
    std::vector<TensorSpec> tensors;
    for (std::size_t i = 0; i < 16; ++i) {
      tensors.push_back({.name = fmt::format("t{}", i),
                         .type = kTypes[i / 2 % 4],
                         .shape = {i % 5 == 0 ? 6000 + i : 1 + 37 * i}});
    }
    std::ranges::shuffle(tensors, random);
    std::vector<Bytes> memory;
    for (const auto& tensor : tensors) memory.push_back(fractions(tensor, comm->rank(), step));
    std::vector<SyncHandle> handles(tensors.size());
    const auto start = [&](std::size_t first) {
      for (std::size_t i = first; i < tensors.size(); i += 2) {
        handles[i] = engine.allreduce(tensors[i], memory[i], memory[i], Reduction::mean);
        if (i % 5 == first) std::this_thread::sleep_for(std::chrono::microseconds(seed * 70 % 300));
      }
    };
    {
      const std::jthread other(start, 1);
      start(0);
    }
    engine.end_step();
    for (std::size_t i = 0; i < tensors.size(); ++i) {
      handles[i].wait();
      results[fmt::format("{} of step {}", tensors[i].name, step)] = std::move(memory[i]);
    }
  }
  engine.close();
  return results;
}

class Deterministic : public ::testing::TestWithParam<SyncAlgorithm> {};

INSTANTIATE_TEST_SUITE_P(Algorithms, Deterministic,
                         ::testing::Values(SyncAlgorithm::automatic, SyncAlgorithm::direct,
                                           SyncAlgorithm::two_level),
                         [](const auto& one) {
                           return one.param == SyncAlgorithm::direct      ? "direct"
                                  : one.param == SyncAlgorithm::two_level ? "two_level"
                                                                          : "automatic";
                         });

// Neither the strategy nor arrival, fusion or run changes a bit, on any rank.
TEST_P(Deterministic, ResultsAreTheSameBitByBit) {
  const auto runs = test::random_cases<std::uint64_t>(2);
  for (const auto [ranks, ranks_per_node] : {Layout{4, 0}, Layout{5, 2}}) {
    std::mutex mutex;
    Results expected;
    for (const char* strategy : kStrategies) {
      for (std::uint64_t run = 0; run < runs; ++run) {
        SyncOptions options{.strategy = find_sync_way(strategy),
                            .cycle = std::chrono::microseconds(300),
                            .fusion_bytes = run % 3 == 0   ? 0U
                                            : run % 3 == 1 ? 70'000U
                                                           : 64U << 20,
                            .algorithm = GetParam(),
                            .deterministic = true};
        run_ranks(ranks, ranks_per_node, [&](const auto& comm) {
          const Results results = run_steps(comm, options, run);
          const std::lock_guard lock(mutex);
          if (expected.empty()) expected = results;
          for (const auto& [name, bytes] : results) {
            EXPECT_EQ(bytes, expected.at(name)) << name << ", " << strategy;
          }
        });
        if (::testing::Test::HasFailure()) return;
      }
    }
  }
}

class WireFormats : public ::testing::TestWithParam<SyncAlgorithm> {};

INSTANTIATE_TEST_SUITE_P(Algorithms, WireFormats,
                         ::testing::Values(SyncAlgorithm::automatic, SyncAlgorithm::mpi,
                                           SyncAlgorithm::direct, SyncAlgorithm::two_level),
                         [](const auto& one) {
                           return one.param == SyncAlgorithm::mpi         ? "mpi"
                                  : one.param == SyncAlgorithm::direct    ? "direct"
                                  : one.param == SyncAlgorithm::two_level ? "two_level"
                                                                          : "automatic";
                         });

constexpr Layout kLayouts[] = {{3, 0}, {3, 1}, {5, 2}};

/// The sum of one element, and how far the engine may be from it. Inputs and the result are rounded
/// once; `mpi` rounds every intermediate sum, of which none is larger than `magnitude`.
void expect_near(const Bytes& got, const TensorSpec& tensor, TensorType wire, bool rounds_all,
                 int ranks) {
  for (std::uint64_t i = 0; i < tensor.elements(); ++i) {
    double sum = 0;
    double magnitude = 0;
    double tolerance = 0;
    for (int rank = 0; rank < ranks; ++rank) {
      const Bytes one = fractions({.type = tensor.type, .shape = {i + 1}}, rank, 1);
      const double value = test::get_number(tensor.type, one.data() + i * size_of(tensor.type));
      sum += value;
      magnitude += std::abs(value);
      tolerance += test::half_ulp(wire, 2 * value);
    }
    tolerance += test::half_ulp(wire, 2 * magnitude) * (rounds_all ? ranks : 1);
    ASSERT_NEAR(test::get_number(tensor.type, got.data() + i * size_of(tensor.type)), sum,
                tolerance)
        << tensor.name << ' ' << i;
  }
}

TEST_P(WireFormats, AreOffByTheirRoundingOnly) {
  for (const auto [ranks, ranks_per_node] : kLayouts) {
    for (const auto format : {WireFormat::float16, WireFormat::bfloat16}) {
      const auto wire = format == WireFormat::float16 ? TensorType::float16 : TensorType::bfloat16;
      run_ranks(ranks, ranks_per_node, [&](const auto& comm) {
        SyncEngine engine(comm, {.wire = format, .algorithm = GetParam()});
        for (int step = 0; step < 3; ++step) {
          std::vector<TensorSpec> tensors{
              {.name = "wide", .type = TensorType::float64, .shape = {200}},
              {.name = "usual", .shape = {211}}};
          std::vector<Bytes> memory;
          std::vector<SyncHandle> handles;
          for (const auto& one : tensors) memory.push_back(fractions(one, comm->rank(), 1));
          for (std::size_t i = 0; i < 2; ++i) {
            handles.push_back(engine.allreduce(tensors[i], memory[i], memory[i]));
          }
          for (std::size_t i = 0; i < 2; ++i) {
            handles[i].wait();
            expect_near(memory[i], tensors[i], wire, GetParam() == SyncAlgorithm::mpi,
                        comm->size());
          }
        }
        engine.close();
      });
      if (::testing::Test::HasFailure()) return;
    }
  }
}

double sum_of(SyncEngine& engine, const std::string& name, float value) {
  Bytes bytes = std::vector<std::byte>(sizeof(float));
  test::put_number(TensorType::float32, bytes.data(), value);
  engine.allreduce({.name = name, .shape = {}}, bytes, bytes).wait();
  return test::get_number(TensorType::float32, bytes.data());
}

// float16 ends at 65504, and what is beyond it is infinite; bfloat16 reaches as far as float32.
TEST_P(WireFormats, OverflowToInfinityWhereTheyMove) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  for (const Layout& layout : kLayouts) {
    const int ranks = layout.ranks;
    const int ranks_per_node = layout.ranks_per_node;
    run_ranks(ranks, ranks_per_node, [&](const auto& comm) {
      SyncEngine engine(comm, {.wire = WireFormat::float16, .algorithm = GetParam()});
      const bool shares_memory = GetParam() == SyncAlgorithm::two_level ||
                                 (GetParam() == SyncAlgorithm::automatic && ranks_per_node != 1);
      const bool moves = !shares_memory || ranks_per_node != 0;
      EXPECT_EQ(sum_of(engine, "one", 70'000), moves ? kInfinity : 70'000 * ranks);
      EXPECT_EQ(sum_of(engine, "sum", 40'000), moves ? kInfinity : 40'000 * ranks);
      EXPECT_EQ(sum_of(engine, "small", 8), 8 * ranks);
      EXPECT_EQ(sum_of(engine, "negative", -40'000), moves ? -kInfinity : -40'000 * ranks);
      engine.close();
      SyncEngine wide(comm, {.wire = WireFormat::bfloat16, .algorithm = GetParam()});
      EXPECT_NEAR(sum_of(wide, "sum", 1e30F), 1e30 * ranks, 1e30 * ranks / 64);
      wide.close();
    });
  }
}

TEST_P(WireFormats, ChangeNothingButWideFloats) {
  run_ranks(3, 1, [&](const auto& comm) {
    SyncEngine engine(comm, {.wire = WireFormat::bfloat16, .algorithm = GetParam()});
    std::vector<std::int32_t> numbers{1'234'567, -7, 1 << 29};
    const auto bytes = std::as_writable_bytes(std::span(numbers));
    engine.allreduce({.name = "whole", .type = TensorType::int32, .shape = {3}}, bytes, bytes)
        .wait();
    EXPECT_EQ(numbers, (std::vector<std::int32_t>{3'703'701, -21, 3 << 29}));
    engine.close();
  });
}

}  // namespace
}  // namespace forebay
