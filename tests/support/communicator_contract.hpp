// What every Communicator must do, whatever is behind it. Collective: called by all ranks.
#pragma once

#include <gtest/gtest.h>

#include <cstring>
#include <numeric>
#include <string>
#include <thread>
#include <vector>

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
  check_common_failure(comm);
}

}  // namespace forebay::test
