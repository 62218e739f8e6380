// What NonblockingCollectives must do, whatever is behind them. Collective: called by all ranks.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <numeric>
#include <thread>
#include <vector>

#include "comm/nonblocking.hpp"
#include "core/clock.hpp"
#include "core/half.hpp"
#include "forebay/communicator.hpp"
#include "forebay/error.hpp"

namespace forebay::test {

template <typename T>
struct SharedNumbers {
  explicit SharedNumbers(std::size_t size) : memory(std::make_shared<std::vector<T>>(size)) {}
  std::vector<T>& values() { return *memory; }
  SharedBytes bytes() { return {memory, std::as_writable_bytes(std::span(*memory))}; }

  std::shared_ptr<std::vector<T>> memory;
};

inline void finish(NonblockingCollectives::Operation& operation) {
  const double begin = now_seconds();
  while (!operation->done()) {
    ASSERT_LT(now_seconds() - begin, 60);
    std::this_thread::sleep_for(std::chrono::microseconds(50));
  }
  EXPECT_TRUE(operation->done()) << "from then on";
}

template <typename T>
void check_reduction(NonblockingCollectives& comm, TensorType type, Combination how) {
  SharedNumbers<T> numbers(1000);
  for (std::size_t i = 0; i < 1000; ++i) {
    numbers.values()[i] = static_cast<T>(comm.rank()) * 3 + static_cast<T>(i % 50);
  }
  auto operation = comm.all_reduce(numbers.bytes(), type, how);
  finish(operation);
  const int ranks = comm.size();
  for (std::size_t i = 0; i < 1000; ++i) {
    const auto first = static_cast<T>(i % 50);
    T expected = first;
    if (how == Combination::max) expected = first + static_cast<T>(3 * (ranks - 1));
    if (how == Combination::sum) {
      expected = first * static_cast<T>(ranks) + static_cast<T>(3 * ranks * (ranks - 1) / 2);
    }
    ASSERT_EQ(numbers.values()[i], expected) << to_string(type) << ' ' << i;
  }
}

inline void check_half_reduction(NonblockingCollectives& comm, TensorType type) {
  const bool brain = type == TensorType::bfloat16;
  SharedNumbers<std::uint16_t> numbers(100);
  const auto value = static_cast<float>(comm.rank() + 1);
  std::ranges::fill(numbers.values(), brain ? narrow_bfloat16(value) : narrow_float16(value));
  auto operation = comm.all_reduce(numbers.bytes(), type, Combination::sum);
  finish(operation);
  const std::uint16_t sum = numbers.values().back();
  EXPECT_EQ(brain ? widen_bfloat16(sum) : widen_float16(sum),
            static_cast<float>(comm.size() * (comm.size() + 1) / 2));
}

inline void check_reductions(NonblockingCollectives& comm) {
  for (const auto how : {Combination::sum, Combination::min, Combination::max}) {
    check_reduction<float>(comm, TensorType::float32, how);
    check_reduction<double>(comm, TensorType::float64, how);
    check_reduction<std::int32_t>(comm, TensorType::int32, how);
    check_reduction<std::int64_t>(comm, TensorType::int64, how);
  }
  check_half_reduction(comm, TensorType::float16);
  check_half_reduction(comm, TensorType::bfloat16);
  SharedNumbers<std::uint8_t> bits(3);
  bits.values() = {0xFF, static_cast<std::uint8_t>(comm.rank() == 0 ? 0xF0 : 0xFF), 0};
  auto operation = comm.all_reduce(bits.bytes(), TensorType::float64, Combination::bit_and);
  finish(operation);
  EXPECT_EQ(bits.values(), (std::vector<std::uint8_t>{0xFF, 0xF0, 0}));
  bits.values() = {0, static_cast<std::uint8_t>(comm.rank() == 0 ? 0xF0 : 0), 1};
  operation = comm.all_reduce(bits.bytes(), TensorType::float64, Combination::bit_or);
  finish(operation);
  EXPECT_EQ(bits.values(), (std::vector<std::uint8_t>{0, 0xF0, 1}));
}

inline void check_blocks(NonblockingCollectives& comm) {
  const auto ranks = static_cast<std::size_t>(comm.size());
  SharedNumbers<int> mine(ranks * 10);
  SharedNumbers<int> theirs(ranks * 10);
  for (std::size_t to = 0; to < ranks; ++to) {
    std::fill_n(mine.values().begin() + static_cast<std::ptrdiff_t>(to) * 10, 10,
                comm.rank() * 100 + static_cast<int>(to));
  }
  auto operation = comm.all_to_all(mine.bytes(), theirs.bytes());
  finish(operation);
  for (std::size_t i = 0; i < ranks * 10; ++i) {
    EXPECT_EQ(theirs.values()[i], static_cast<int>(i / 10) * 100 + comm.rank());
  }
  // Each rank's part is in its place already.
  const auto place = static_cast<std::size_t>(comm.rank()) * 10;
  std::fill_n(mine.values().begin() + static_cast<std::ptrdiff_t>(place), 10, comm.rank());
  const SharedBytes all = mine.bytes();
  operation =
      comm.all_gather({all.owner, all.bytes.subspan(place * sizeof(int), 10 * sizeof(int))}, all);
  finish(operation);
  for (std::size_t i = 0; i < ranks * 10; ++i) {
    EXPECT_EQ(mine.values()[i], static_cast<int>(i / 10));
  }
  EXPECT_THROW(comm.all_gather(mine.bytes(), SharedNumbers<int>(1).bytes()), Error);
  EXPECT_THROW(comm.all_to_all(mine.bytes(), SharedNumbers<int>(1).bytes()), Error);
}

inline void check_broadcasts(NonblockingCollectives& comm) {
  for (int root = 0; root < comm.size(); ++root) {
    SharedNumbers<int> data(5000);
    if (comm.rank() == root) std::ranges::fill(data.values(), 7 + root);
    auto operation = comm.broadcast(data.bytes(), root);
    finish(operation);
    EXPECT_EQ(data.values().back(), 7 + root);
  }
}

/// Many at a time, asked about from the last to the first.
inline void check_several_at_a_time(NonblockingCollectives& comm) {
  constexpr std::size_t kOperations = 20;
  std::vector<SharedNumbers<double>> numbers;
  std::vector<NonblockingCollectives::Operation> operations;
  for (std::size_t i = 0; i < kOperations; ++i) {
    auto& one = numbers.emplace_back(std::size_t{1} << (i % 14));
    std::ranges::fill(one.values(), static_cast<double>(i));
    operations.push_back(comm.all_reduce(one.bytes(), TensorType::float64, Combination::sum));
    if (i % 5 == 0) operations.push_back(comm.barrier());
  }
  const auto all_done = [&] {
    return std::ranges::all_of(operations.rbegin(), operations.rend(),
                               [](auto& operation) { return operation->done(); });
  };
  const double begin = now_seconds();
  while (!all_done()) {
    ASSERT_LT(now_seconds() - begin, 60);
    std::this_thread::sleep_for(std::chrono::microseconds(50));
  }
  for (std::size_t i = 0; i < kOperations; ++i) {
    EXPECT_EQ(numbers[i].values().back(), static_cast<double>(i) * comm.size());
  }
}

inline void check_barrier(Communicator& comm, NonblockingCollectives& collectives) {
  auto operation = NonblockingCollectives::Operation();
  if (comm.rank() == 0) {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    comm.carry_messages();
  }
  operation = collectives.barrier();
  finish(operation);
}

inline void check_nonblocking(Communicator& comm) {
  const auto collectives = comm.nonblocking();
  const auto others = comm.nonblocking();
  EXPECT_EQ(collectives->rank(), comm.rank());
  EXPECT_EQ(collectives->size(), comm.size());
  check_reductions(*collectives);
  check_blocks(*others);
  check_broadcasts(*collectives);
  check_several_at_a_time(*others);
  check_barrier(comm, *collectives);
}

}  // namespace forebay::test
