// What sums over ranks must give, however they are made. Collective: called by all ranks.
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <thread>
#include <vector>

#include "core/clock.hpp"
#include "core/mix.hpp"
#include "forebay/communicator.hpp"
#include "sync/summation.hpp"
#include "tests/support/tensor_numbers.hpp"

namespace forebay::test {

/// Half a unit in the last place of a number of about this size.
inline double half_ulp(TensorType type, double value) {
  const int digits = type == TensorType::float16    ? 11
                     : type == TensorType::bfloat16 ? 8
                     : type == TensorType::float32  ? 24
                     : type == TensorType::float64  ? 53
                                                    : 64;
  if (digits == 64) return 0;
  const double least = type == TensorType::float16 ? std::ldexp(1, -25) : 0;
  return std::max(least, std::ldexp(std::abs(value), -digits));
}

/// One number of one rank, the same whoever asks: whole numbers for integers, else fractions.
inline double number_of(TensorType type, int rank, std::size_t i, unsigned seed) {
  const std::uint64_t random = mix_key({seed, static_cast<std::uint64_t>(rank), i});
  const double fraction = static_cast<double>(random % 20'001) / 10'000 - 1;
  const bool whole = type == TensorType::int32 || type == TensorType::int64;
  const double value = whole ? std::floor(fraction * 1'000'000) : fraction;
  std::byte place[8]{};  // as the type holds it
  put_number(type, place, value);
  return get_number(type, place);
}

struct ExpectedNumber {
  double value = 0;
  double magnitude = 0;  ///< sum of absolute values
};

inline ExpectedNumber expected_number(TensorType type, Combination how, int ranks, std::size_t i,
                                      unsigned seed) {
  ExpectedNumber expected;
  for (int rank = 0; rank < ranks; ++rank) {
    const double one = number_of(type, rank, i, seed);
    expected.magnitude += std::abs(one);
    if (rank == 0) {
      expected.value = one;
    } else if (how == Combination::sum) {
      expected.value += one;
    } else {
      expected.value =
          how == Combination::min ? std::min(expected.value, one) : std::max(expected.value, one);
    }
  }
  return expected;
}

/// One sum on its way.
struct TestSum {
  TensorType type = TensorType::float32;
  Combination how = Combination::sum;
  std::size_t elements = 0;
  unsigned seed = 0;

  std::size_t bytes() const { return elements * size_of(type); }
};

template <typename Ready>
void poll_until(Ready ready) {
  const double begin = now_seconds();
  while (!ready()) {
    ASSERT_LT(now_seconds() - begin, 100) << "a sum hangs";
  }
}

inline void rest(Summation::Rest rest) {
  if (rest.count() > 0) {
    std::this_thread::sleep_for(std::min(rest, Summation::Rest(200)));
  } else {
    std::this_thread::yield();
  }
}

inline void start_sum(Communicator& comm, Summation& lane, const TestSum& sum) {
  poll_until([&] {
    if (lane.free()) return true;
    rest(Summation::Rest(20));
    return false;
  });
  const auto room = lane.begin(sum.type, sum.how, sum.bytes());
  ASSERT_EQ(room.size(), sum.bytes());
  for (std::size_t i = 0; i < sum.elements; ++i) {
    put_number(sum.type, room.data() + i * size_of(sum.type),
               number_of(sum.type, comm.rank(), i, sum.seed));
  }
  lane.start();
}

inline std::vector<std::byte> finish_sum(Summation& lane) {
  poll_until([&] {
    const auto wanted = lane.step();
    if (wanted) rest(*wanted);
    return !wanted;
  });
  const auto result = lane.result();
  std::vector<std::byte> copy(result.begin(), result.end());
  lane.release();
  return copy;
}

/// `wire`: what numbers are rounded to before and after, if not their own type.
inline void expect_sum(Communicator& comm, const TestSum& sum, TensorType wire,
                       const std::vector<std::byte>& result) {
  ASSERT_EQ(result.size(), sum.bytes());
  for (std::size_t i = 0; i < sum.elements; ++i) {
    const auto expected = expected_number(sum.type, sum.how, comm.size(), i, sum.seed);
    const double got = get_number(sum.type, result.data() + i * size_of(sum.type));
    double tolerance = 0;
    if (sum.how == Combination::sum) {
      tolerance = 2 * half_ulp(sum.type, expected.magnitude) * comm.size();
    }
    if (wire != sum.type) tolerance += 2 * half_ulp(wire, expected.magnitude) * comm.size();
    ASSERT_NEAR(got, expected.value, tolerance)
        << to_string(sum.type) << ' ' << i << " of " << sum.elements;
  }
}

inline TensorType on_wire(TensorType type, WireFormat wire) {
  if (type != TensorType::float32 && type != TensorType::float64) return type;
  if (wire == WireFormat::as_is) return type;
  return wire == WireFormat::float16 ? TensorType::float16 : TensorType::bfloat16;
}

/// All types, combinations and lengths, as many at a time as there are lanes.
inline void check_sums(Communicator& comm, const SummationOptions& options,
                       std::span<const std::size_t> lengths) {
  Summations sums(comm, options);
  EXPECT_FALSE(sums.explain().empty());
  std::vector<TestSum> todo;
  unsigned seed = 0;
  for (const std::size_t elements : lengths) {
    for (const TensorType type : kTensorTypes) {
      for (const auto how : {Combination::sum, Combination::min, Combination::max}) {
        if (how != Combination::sum && elements > 5000) continue;
        todo.push_back({.type = type, .how = how, .elements = elements, .seed = ++seed});
      }
    }
  }
  std::size_t started = 0;
  for (std::size_t i = 0; i < todo.size(); ++i) {
    for (; started < std::min(i + sums.lanes(), todo.size()); ++started) {
      start_sum(comm, sums.lane(started % sums.lanes()), todo[started]);
    }
    const auto result = finish_sum(sums.lane(i % sums.lanes()));
    expect_sum(comm, todo[i], on_wire(todo[i].type, options.wire), result);
    if (::testing::Test::HasFatalFailure()) return;
  }
  comm.barrier();
}

/// A NaN of any rank is the smallest and the largest number of all.
inline void check_nan(Communicator& comm, const SummationOptions& options) {
  Summations sums(comm, options);
  Summation& lane = sums.lane(0);
  for (const TensorType type : kTensorTypes) {
    if (type == TensorType::int32 || type == TensorType::int64) continue;
    for (const auto how : {Combination::min, Combination::max}) {
      for (const std::size_t elements : {std::size_t{1}, std::size_t{9001}}) {
        start_sum(comm, lane, {.type = type, .how = how, .elements = 0});
        finish_sum(lane);
        const auto room = lane.begin(type, how, elements * size_of(type));
        for (std::size_t i = 0; i < elements; ++i) {
          const bool mine =
              i % static_cast<std::size_t>(comm.size()) == static_cast<std::size_t>(comm.rank());
          put_number(type, room.data() + i * size_of(type),
                     mine ? std::numeric_limits<double>::quiet_NaN() : 1);
        }
        lane.start();
        const auto result = finish_sum(lane);
        for (std::size_t i = 0; i < elements; ++i) {
          ASSERT_TRUE(std::isnan(get_number(type, result.data() + i * size_of(type))))
              << to_string(type) << ' ' << i;
        }
      }
    }
  }
  comm.barrier();
}

/// Bytes of one sum of floats that are added in another order with other results.
inline std::vector<std::byte> sum_of_fractions(Communicator& comm, const SummationOptions& options,
                                               std::size_t elements, std::size_t before) {
  Summations sums(comm, options);
  const TestSum sum{.elements = before + elements, .seed = 5};
  Summation& lane = sums.lane(0);
  const auto room = lane.begin(sum.type, sum.how, sum.bytes());
  for (std::size_t i = 0; i < before + elements; ++i) {
    const double value = i < before ? 1 : number_of(sum.type, comm.rank(), i - before, sum.seed);
    put_number(sum.type, room.data() + i * sizeof(float), value);
  }
  lane.start();
  auto result = finish_sum(lane);
  comm.barrier();
  return {result.begin() + static_cast<std::ptrdiff_t>(before * sizeof(float)), result.end()};
}

/// Neither where an element lies in a buffer nor the run makes a difference.
inline void check_determinism(Communicator& comm, SyncAlgorithm algorithm) {
  const SummationOptions options{
      .algorithm = algorithm, .deterministic = true, .largest = std::size_t{1} << 20};
  for (const std::size_t elements : {std::size_t{100}, std::size_t{30'000}}) {
    const auto first = sum_of_fractions(comm, options, elements, 0);
    EXPECT_EQ(sum_of_fractions(comm, options, elements, 0), first);
    EXPECT_EQ(sum_of_fractions(comm, options, elements, 777), first);
    EXPECT_EQ(sum_of_fractions(comm, options, elements, 50'001), first);
  }
}

}  // namespace forebay::test
