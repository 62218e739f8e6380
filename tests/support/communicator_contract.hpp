// What every Communicator must do, whatever is behind it. Collective: called by all ranks.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <map>
#include <numeric>
#include <string>
#include <thread>
#include <vector>

#include "comm/messages.hpp"
#include "forebay/communicator.hpp"
#include "forebay/error.hpp"

namespace forebay::test {

inline void check_transfers(Communicator& comm) {
  const int size = comm.size();
  comm.barrier();
  for (int root = 0; root < size; ++root) {
    const std::string text(static_cast<std::size_t>(root) * 1000, 'x');
    EXPECT_EQ(broadcast_text(comm, comm.rank() == root ? text : "", root), text);
  }
  const int mine = comm.rank() * 10;
  std::vector<int> all(static_cast<std::size_t>(size), -1);
  comm.all_gather(std::as_bytes(std::span(&mine, 1)), std::as_writable_bytes(std::span(all)));
  for (int rank = 0; rank < size; ++rank) EXPECT_EQ(all[static_cast<std::size_t>(rank)], rank * 10);
  const std::vector<std::byte> part(static_cast<std::size_t>(comm.rank()) * 7, std::byte{42});
  const auto parts = comm.gather(part, size - 1);
  if (comm.rank() != size - 1) {
    EXPECT_TRUE(parts.empty());
  } else {
    ASSERT_EQ(parts.size(), static_cast<std::size_t>(size));
    for (std::size_t rank = 0; rank < parts.size(); ++rank) {
      EXPECT_EQ(parts[rank], std::vector<std::byte>(rank * 7, std::byte{42}));
    }
  }
  std::vector<float> values(1000);
  std::iota(values.begin(), values.end(), static_cast<float>(comm.rank()));
  comm.all_reduce_sum(values);
  for (std::size_t i = 0; i < values.size(); ++i) {
    EXPECT_EQ(values[i], static_cast<float>(size) * static_cast<float>(i) +
                             static_cast<float>(size * (size - 1) / 2));
  }
}

inline void check_splitting(Communicator& comm) {
  const auto parity = comm.split(comm.rank() % 2, -comm.rank());
  EXPECT_EQ(parity->size(), (comm.size() + 1 - comm.rank() % 2) / 2);
  EXPECT_EQ(parity->rank(), parity->size() - 1 - comm.rank() / 2) << "ordered by key";
  parity->barrier();
}

inline void check_sharing(Communicator& comm, SharedMemoryKind kind) {
  const auto node = comm.split_by_node();
  constexpr std::size_t kBytes = 1 << 20;
  const auto memory = node->share(kBytes, kind);
  ASSERT_GE(memory->bytes().size(), kBytes);
  memory->reserve(0, kBytes);
  const auto place = memory->bytes().subspan(static_cast<std::size_t>(node->rank()) * 4096, 4);
  const int mine = comm.rank() + 1000;
  std::memcpy(place.data(), &mine, sizeof(mine));
  node->barrier();
  int sum = 0;
  for (int rank = 0; rank < node->size(); ++rank) {
    int theirs = 0;
    std::memcpy(&theirs, memory->bytes().data() + static_cast<std::size_t>(rank) * 4096,
                sizeof(theirs));
    sum += theirs >= 1000 ? 1 : 0;
  }
  EXPECT_EQ(sum, node->size());
  node->barrier();
}

inline void check_notices(Communicator& comm) {
  const int next = (comm.rank() + 1) % comm.size();
  const std::string text = "from " + std::to_string(comm.rank());
  comm.send_notice(next, std::as_bytes(std::span(text)));
  std::optional<std::vector<std::byte>> message;
  for (int tries = 0; !message && tries < 10000; ++tries) {
    message = comm.poll_notice();
    if (!message) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  ASSERT_TRUE(message.has_value());
  const std::string got(reinterpret_cast<const char*>(message->data()), message->size());
  EXPECT_EQ(got, "from " + std::to_string((comm.rank() + comm.size() - 1) % comm.size()));
}

/// Pairs of ranks keep their order, whatever the lengths; others do not disturb them.
inline void check_messages(Communicator& comm) {
  const auto length = [](int from, int to, int number) {
    return number == 2 ? std::size_t{3000000}
                       : static_cast<std::size_t>(100 * from + 10 * to + number);
  };
  constexpr int kMessages = 4;
  for (int number = 0; number < kMessages; ++number) {
    for (int to = 0; to < comm.size(); ++to) {
      const std::vector<std::byte> message(length(comm.rank(), to, number), std::byte(number));
      comm.send(to, message);
    }
  }
  for (int from = comm.size() - 1; from >= 0; --from) {
    for (int number = 0; number < kMessages; ++number) {
      const auto message = receive(comm, from, std::chrono::seconds(60), {}, "a message");
      ASSERT_TRUE(message.has_value());
      ASSERT_EQ(message->size(), length(from, comm.rank(), number));
      if (!message->empty()) {
        EXPECT_EQ(message->back(), std::byte(number));
      }
    }
    EXPECT_FALSE(comm.try_receive(from).has_value());
  }
  comm.barrier();
}

inline void check_waiting_for_messages(Communicator& comm) {
  const auto at_once = std::chrono::milliseconds(30);
  int asked = 0;
  const auto soon = [&asked] { return ++asked > 3; };
  EXPECT_FALSE(receive(comm, 0, std::chrono::seconds(60), soon, "nothing").has_value());
  EXPECT_THROW(receive(comm, 0, at_once, {}, "nothing"), Error);
  comm.barrier();
}

/// Threads of all ranks beside their main threads: each number is given out once.
inline void check_counter(Communicator& comm, std::unique_ptr<SharedCounter> counter) {
  constexpr std::uint64_t kDraws = 50;
  EXPECT_FALSE(counter->describe().empty());
  std::vector<std::uint64_t> drawn;
  std::atomic<int> left = 1;
  {
    const std::jthread server([&] {
      while (left != 0) {
        counter->serve();
        std::this_thread::sleep_for(std::chrono::microseconds(100));
      }
    });
    for (std::uint64_t i = 0; i < kDraws; ++i) {
      if (const auto number = counter->fetch_add(1, {})) drawn.push_back(*number);
    }
    EXPECT_EQ(drawn.size(), kDraws);
    counter->add(1000);
    comm.barrier();
    const auto value = counter->load({});
    const auto size = static_cast<std::uint64_t>(comm.size());
    // Additions without an answer may still be under way.
    EXPECT_GE(value.value_or(0), size * kDraws);
    EXPECT_LE(value.value_or(0), size * (kDraws + 1000));
    comm.barrier();
    left = 0;
  }
  EXPECT_TRUE(std::is_sorted(drawn.begin(), drawn.end()));
  const auto all = comm.gather(std::as_bytes(std::span(drawn)), 0);
  std::map<std::uint64_t, int> times;
  for (const auto& part : all) {
    for (std::size_t i = 0; i + 8 <= part.size(); i += 8) {
      std::uint64_t number = 0;
      std::memcpy(&number, part.data() + i, sizeof(number));
      EXPECT_EQ(++times[number], 1) << number;
    }
  }
}

/// The others must not wait for a number whose rank has left.
inline void check_counter_that_is_gone(Communicator& comm, std::unique_ptr<SharedCounter> counter) {
  if (comm.rank() == 0) {
    counter.reset();
    for (int rank = 1; rank < comm.size(); ++rank) comm.send(rank, {});
  } else {
    ASSERT_TRUE(receive(comm, 0, std::chrono::seconds(60), {}, "rank 0"));
    // Where the memory is reached without the help of rank 0, it stays.
    EXPECT_EQ(counter->fetch_add(1, {}).has_value(), !counter->needs_serving());
    counter->add(1);
  }
  comm.barrier();
}

inline void check_common_failure(Communicator& comm) {
  const int culprit = comm.size() - 1;
  try {
    collectively(comm, [&] {
      if (comm.rank() == culprit) throw Error(ErrorKind::not_found, "gone", "look elsewhere");
    });
    ADD_FAILURE() << "nothing was thrown";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::not_found);
    EXPECT_EQ(error.where().rank, culprit);
    EXPECT_EQ(error.remedy(), "look elsewhere");
  }
  collectively(comm, [] {});
}

inline void check_communicator(Communicator& comm) {
  check_transfers(comm);
  check_splitting(comm);
  check_sharing(comm, SharedMemoryKind::posix);
  check_sharing(comm, SharedMemoryKind::mpi);
  check_notices(comm);
  check_messages(comm);
  check_waiting_for_messages(comm);
  check_counter(comm, comm.share_counter());
  check_counter_that_is_gone(comm, comm.share_counter());
  check_common_failure(comm);
}

}  // namespace forebay::test
