// How ranks find each other: every kind of rendezvous, and what goes wrong there.
#include "forebay/connect.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <filesystem>
#include <fstream>
#include <thread>

#include "comm/net/socket.hpp"
#include "core/clock.hpp"
#include "forebay/error.hpp"
#include "tests/support/net_ranks.hpp"
#include "tests/support/temporary_folder.hpp"

namespace forebay {
namespace {

using std::chrono::milliseconds;
using ::testing::HasSubstr;

constexpr milliseconds kPatience = std::chrono::seconds(30);

void check_sum(Communicator& comm) {
  std::vector<float> one{1};
  comm.all_reduce_sum(one);
  EXPECT_EQ(one.front(), static_cast<float>(comm.size()));
}

std::vector<std::byte> bytes_of(const std::string& text) {
  const auto bytes = std::as_bytes(std::span(text));
  return {bytes.begin(), bytes.end()};
}

void check_rendezvous(Rendezvous& here, Rendezvous& there) {
  EXPECT_FALSE(here.get("none", milliseconds(0)).has_value());
  EXPECT_FALSE(here.get("none", milliseconds(30)).has_value());
  there.set("a.key", bytes_of("value"));
  EXPECT_EQ(here.get("a.key", kPatience), bytes_of("value"));
  there.set("a.key", bytes_of("another"));
  EXPECT_EQ(here.get("a.key", kPatience), bytes_of("another"));
  const std::vector<std::byte> longest(Rendezvous::kLongestValue, std::byte{3});
  here.set("long", longest);
  EXPECT_EQ(there.get("long", kPatience), longest);
  here.set("empty", {});
  EXPECT_EQ(there.get("empty", kPatience), bytes_of(""));
  std::jthread late([&] {
    std::this_thread::sleep_for(milliseconds(50));
    there.set("late", bytes_of("x"));
  });
  EXPECT_EQ(here.get("late", kPatience), bytes_of("x"));
}

TEST(FileRendezvous, GivesWhatWasLeft) {
  const test::TemporaryFolder folder;
  const auto here = file_rendezvous(folder.path());
  const auto there = file_rendezvous(folder.path());
  check_rendezvous(*here, *there);
  here->erase("a.key");
  here->erase("a.key");
  EXPECT_FALSE(there->get("a.key", milliseconds(0)).has_value());
  EXPECT_TRUE(here->host().empty());
}

TEST(FileRendezvous, NeedsAFolder) {
  const test::TemporaryFolder folder;
  EXPECT_THROW(file_rendezvous(folder.file("none")), Error);
  test::write_bytes(folder.file("file"), {});
  EXPECT_THROW(file_rendezvous(folder.file("file")), Error);
}

TEST(TcpRendezvous, GivesWhatWasLeft) {
  std::uint16_t port = 0;
  const auto server = serve_rendezvous("127.0.0.1", port);
  ASSERT_NE(port, 0);
  const auto client = join_rendezvous("127.0.0.1", port);
  check_rendezvous(*server, *client);
  check_rendezvous(*join_rendezvous("localhost", port), *client);
  EXPECT_EQ(client->host(), "127.0.0.1");
}

TEST(TcpRendezvous, SurvivesStrangers) {
  std::uint16_t port = 0;
  const auto server = serve_rendezvous("127.0.0.1", port);
  std::vector<net::Descriptor> strangers;
  for (int i = 0; i < 100; ++i) {
    strangers.push_back(net::begin_to_connect(net::Address::of("127.0.0.1", port)));
    std::this_thread::sleep_for(milliseconds(1));
    std::vector<std::byte> garbage(static_cast<std::size_t>(1 + i), std::byte{0xFF});
    net::send_some(strangers.back(), garbage);
    if (i % 3 == 0) strangers.back().reset();
  }
  check_rendezvous(*server, *join_rendezvous("127.0.0.1", port));
}

TEST(TcpRendezvous, AServerThatIsNotThereHasNoValues) {
  std::uint16_t port = 0;
  serve_rendezvous("127.0.0.1", port).reset();
  const auto client = join_rendezvous("127.0.0.1", port);
  EXPECT_FALSE(client->get("key", milliseconds(20)).has_value());
  EXPECT_THROW(join_rendezvous("no-such-host.invalid", 1), Error);
}

TEST(ConnectRanks, ByFolder) {
  const test::TemporaryFolder folder;
  test::run_threads(4, [&](int rank) {
    const auto rendezvous = file_rendezvous(folder.path());
    const auto world = connect_ranks(*rendezvous, {.rank = rank, .size = 4, .timeout = kPatience});
    EXPECT_EQ(world->rank(), rank);
    check_sum(*world);
  });
  EXPECT_TRUE(std::filesystem::is_empty(folder.path()));
}

TEST(ConnectRanks, ByServer) {
  std::uint16_t port = 0;
  auto server = serve_rendezvous("127.0.0.1", port);
  test::run_threads(4, [&](int rank) {
    auto rendezvous = rank == 0 ? std::move(server) : join_rendezvous("127.0.0.1", port);
    const auto world = connect_ranks(*rendezvous, {.rank = rank, .size = 4, .timeout = kPatience});
    rendezvous.reset();
    check_sum(*world);
  });
}

TEST(ConnectRanks, OneRankNeedsNobody) {
  test::MemoryRendezvous rendezvous(std::make_shared<test::CommonValues>());
  check_sum(*connect_ranks(rendezvous, {}));
}

TEST(ConnectRanks, WhatAnotherStartHasLeftIsNotTaken) {
  const auto values = std::make_shared<test::CommonValues>();
  test::MemoryRendezvous rendezvous(values);
  // A start that ended early: rank 0 has left its secret, and nothing was taken away.
  EXPECT_THROW(connect_ranks(rendezvous, {.rank = 0, .size = 3, .timeout = milliseconds(20)}),
               Error);
  for (const auto& [key, value] : values->all()) values->erase(key);
  std::map<std::string, std::vector<std::byte>> stale;
  {
    const auto others = std::make_shared<test::CommonValues>();
    std::jthread first([&] {
      test::MemoryRendezvous alone(others);
      EXPECT_THROW(connect_ranks(alone, {.rank = 0, .size = 3, .timeout = milliseconds(300)}),
                   Error);
    });
    std::this_thread::sleep_for(milliseconds(100));
    stale = others->all();
  }
  ASSERT_FALSE(stale.empty());
  for (const auto& [key, value] : stale) values->set(key, value);
  test::run_threads(3, [&](int rank) {
    if (rank == 0) std::this_thread::sleep_for(milliseconds(300));  // the others read the old one
    test::MemoryRendezvous mine(values);
    check_sum(*connect_ranks(mine, {.rank = rank, .size = 3, .timeout = kPatience}));
  });
}

TEST(ConnectRanks, TwoJobsShareARendezvous) {
  const auto values = std::make_shared<test::CommonValues>();
  test::run_threads(4, [&](int thread) {
    test::MemoryRendezvous rendezvous(values);
    const auto world = connect_ranks(
        rendezvous,
        {.rank = thread / 2, .size = 2, .job = thread % 2 == 0 ? "a" : "b", .timeout = kPatience});
    const int mine = thread % 2;
    int other = mine;
    world->broadcast(std::as_writable_bytes(std::span(&other, 1)), 0);
    EXPECT_EQ(other, mine);
  });
}

/// What each rank throws.
std::vector<std::string> errors_of(int threads, const std::function<ConnectOptions(int)>& options) {
  const auto values = std::make_shared<test::CommonValues>();
  std::vector<std::string> errors(static_cast<std::size_t>(threads));
  test::run_threads(threads, [&](int thread) {
    test::MemoryRendezvous rendezvous(values);
    try {
      connect_ranks(rendezvous, options(thread));
    } catch (const Error& error) {
      errors[static_cast<std::size_t>(thread)] = error.what();
    }
  });
  return errors;
}

TEST(ConnectRanks, NamesTheRanksThatHaveNotCome) {
  const auto errors = errors_of(2, [](int thread) {
    return ConnectOptions{.rank = 2 * thread, .size = 4, .timeout = milliseconds(400)};
  });
  EXPECT_THAT(errors[0], HasSubstr("1, 3"));
  EXPECT_FALSE(errors[1].empty());
}

TEST(ConnectRanks, NamesRankZeroWhereItHasNotCome) {
  const auto errors = errors_of(
      1, [](int) { return ConnectOptions{.rank = 1, .size = 2, .timeout = milliseconds(300)}; });
  EXPECT_THAT(errors[0], HasSubstr("rank 0 has not come"));
}

TEST(ConnectRanks, TwoProcessesOfOneRankAreAnError) {
  for (const int twice : {0, 1}) {
    const double begin = now_seconds();
    const auto errors = errors_of(2, [twice](int) {
      return ConnectOptions{.rank = twice, .size = 3, .timeout = milliseconds(600)};
    });
    if (twice == 1) {
      EXPECT_THAT(errors[0] + errors[1], HasSubstr("rank 0 has not come"));
      continue;
    }
    EXPECT_THAT(errors[0] + errors[1], HasSubstr("two processes say that they are rank 0"));
    EXPECT_LT(now_seconds() - begin, 5);
  }
  const auto errors = errors_of(4, [](int thread) {
    return ConnectOptions{
        .rank = std::min(thread, 2), .size = 4, .timeout = std::chrono::seconds(20)};
  });
  for (const auto& error : errors) {
    EXPECT_THAT(error, HasSubstr("two processes say that they are rank 2"));
  }
}

TEST(ConnectRanks, DifferentNumbersOfRanksAreAnError) {
  const auto errors = errors_of(2, [](int thread) {
    return ConnectOptions{.rank = thread, .size = 2 + thread, .timeout = std::chrono::seconds(5)};
  });
  for (const auto& error : errors) EXPECT_THAT(error, HasSubstr("counts 3 ranks"));
}

TEST(ConnectRanks, RefusesRanksThatCannotBe) {
  const auto errors = errors_of(1, [](int) { return ConnectOptions{.rank = 2, .size = 2}; });
  EXPECT_THAT(errors[0], HasSubstr("rank 2 of 2"));
}

/// Bytes that no rank has left end in an error, whatever they are.
TEST(ConnectRanks, ChecksWhatComesFromTheRendezvous) {
  class Liar final : public test::MemoryRendezvous {
   public:
    Liar(std::shared_ptr<test::CommonValues> values, std::string where, std::string lie)
        : MemoryRendezvous(std::move(values)), where_(std::move(where)), lie_(std::move(lie)) {}
    std::optional<std::vector<std::byte>> get(const std::string& key, milliseconds limit) override {
      auto value = MemoryRendezvous::get(key, limit);
      if (value && key.find(where_) != std::string::npos) return bytes_of(lie_);
      return value;
    }

   private:
    std::string where_;
    std::string lie_;
  };
  for (const char* where : {"start", ".node.", "layout", ".address.", "addresses"}) {
    for (const std::string& lie : {std::string(), std::string("\n\n\n"), std::string(300, 'x')}) {
      const auto values = std::make_shared<test::CommonValues>();
      std::atomic<int> failed = 0;
      test::run_threads(2, [&](int rank) {
        Liar rendezvous(values, where, lie);
        try {
          connect_ranks(rendezvous, {.rank = rank, .size = 2, .timeout = milliseconds(400)});
        } catch (const Error&) {
          ++failed;
        }
      });
      EXPECT_EQ(failed, 2) << where << " '" << lie << "'";
    }
  }
}

TEST(ConnectRanks, ListensWhereItIsTold) {
  const auto values = std::make_shared<test::CommonValues>();
  test::run_threads(2, [&](int rank) {
    test::MemoryRendezvous rendezvous(values);
    const auto world = connect_ranks(
        rendezvous,
        {.rank = rank, .size = 2, .listen_on = rank == 0 ? "127.0.0.2" : "", .timeout = kPatience});
    check_sum(*world);
  });
  const auto errors = errors_of(1, [](int) {
    return ConnectOptions{
        .rank = 0, .size = 1 + 1, .listen_on = "192.0.2.1", .timeout = milliseconds(300)};
  });
  EXPECT_FALSE(errors[0].empty());
}

}  // namespace
}  // namespace forebay
