// Who gets in, and who does not: handshakes, and strangers at the listener.
#include "comm/net/connector.hpp"

#include <gtest/gtest.h>
#include <poll.h>

#include <atomic>
#include <cstring>
#include <random>
#include <thread>

#include "core/clock.hpp"
#include "forebay/error.hpp"
#include "tests/support/net_ranks.hpp"

namespace forebay::net {
namespace {

using std::chrono::milliseconds;

Bytes16 key_of(int number) {
  Bytes16 key{};
  key[3] = static_cast<std::byte>(number);
  return key;
}

/// Lets the two sides talk; `change` sees each part that a side sends.
template <typename Change>
void talk(Handshake& listener, Handshake& connector, Change change) {
  for (int round = 0; round < 4; ++round) {
    for (Handshake* const side : {&listener, &connector}) {
      Handshake& other = side == &listener ? connector : listener;
      std::vector<std::byte> sent(side->to_send().begin(), side->to_send().end());
      side->sent(sent.size());
      change(sent);
      for (std::span<const std::byte> rest = sent; !rest.empty() && other.wants() > 0;) {
        const auto part = rest.first(std::min<std::size_t>(rest.size(), 7));
        other.received(part);
        rest = rest.subspan(part.size());
      }
    }
  }
}

void leave_as_is(std::span<std::byte>) {}

/// The verdicts of both, of ranks 1 and 4 of 8.
std::pair<Verdict, Verdict> verdicts(const JobSecret& of_listener, const JobSecret& of_connector,
                                     bool again = false, int called = 1) {
  std::vector<bool> connected(8, false);
  connected[4] = again;
  auto listener = Handshake::listen(of_listener, 1, random_bytes(), connected);
  auto connector = Handshake::connect(of_connector, 4, called, random_bytes());
  talk(listener, connector, leave_as_is);
  return {listener.verdict(), connector.verdict()};
}

TEST(Handshake, RanksOfOneJobFindEachOther) {
  const auto secret = JobSecret::make(key_of(1), "a job", 8);
  EXPECT_EQ(verdicts(secret, secret), std::pair(Verdict::welcome, Verdict::welcome));
  EXPECT_EQ(verdicts(secret, secret, true), std::pair(Verdict::duplicate, Verdict::duplicate));
}

TEST(Handshake, WhoDoesNotKnowTheSecretStaysOutside) {
  const auto secret = JobSecret::make(key_of(1), "a job", 8);
  const std::pair<JobSecret, const char*> others[] = {
      {JobSecret::make(key_of(2), "a job", 8), "another key"},
      {JobSecret::make(key_of(1), "another job", 8), "another job"},
      {JobSecret::make(key_of(1), "a job", 9), "another number of ranks"}};
  for (const auto& [other, what] : others) {
    EXPECT_EQ(verdicts(secret, other).first, Verdict::stranger) << what;
    EXPECT_NE(verdicts(secret, other).second, Verdict::welcome) << what;
  }
  EXPECT_EQ(verdicts(secret, secret, false, 2).first, Verdict::stranger) << "called another rank";
}

TEST(Handshake, EveryBitCounts) {
  const auto secret = JobSecret::make(key_of(1), "a job", 8);
  const std::vector<bool> connected(8, false);
  for (std::size_t bit = 0; bit < (24 + 40 + 24) * 8; ++bit) {
    auto listener = Handshake::listen(secret, 1, random_bytes(), connected);
    auto connector = Handshake::connect(secret, 4, 1, random_bytes());
    std::size_t seen = 0;
    talk(listener, connector, [&](std::span<std::byte> sent) {
      if (bit / 8 >= seen && bit / 8 < seen + sent.size()) {
        sent[bit / 8 - seen] ^= static_cast<std::byte>(1 << bit % 8);
      }
      seen += sent.size();
    });
    const bool both =
        listener.verdict() == Verdict::welcome && connector.verdict() == Verdict::welcome;
    EXPECT_FALSE(both) << bit;
  }
}

/// What one connection has shown is worth nothing on the next one.
TEST(Handshake, NothingCanBeSaidAgain) {
  const auto secret = JobSecret::make(key_of(1), "a job", 8);
  const std::vector<bool> connected(8, false);
  auto listener = Handshake::listen(secret, 1, random_bytes(), connected);
  auto connector = Handshake::connect(secret, 4, 1, random_bytes());
  connector.received(listener.to_send());
  const std::vector<std::byte> answer(connector.to_send().begin(), connector.to_send().end());
  listener.received(answer);
  EXPECT_EQ(listener.verdict(), Verdict::welcome);
  auto next = Handshake::listen(secret, 1, random_bytes(), connected);
  next.received(answer);
  EXPECT_EQ(next.verdict(), Verdict::stranger);
  auto mirrored = Handshake::connect(secret, 4, 1, random_bytes());
  mirrored.received(listener.to_send());
  EXPECT_NE(mirrored.verdict(), Verdict::welcome);
}

/// All ranks of a job at once, on loopback, with `disturb` beside them.
class Job {
 public:
  explicit Job(int ranks, milliseconds limit = std::chrono::seconds(20))
      : secret_(JobSecret::make(random_bytes(), "test", ranks)), limit_(limit) {
    for (int rank = 0; rank < ranks; ++rank) {
      listeners_.push_back(listen_at(Address::of("127.0.0.1", 0)));
      addresses_.push_back(Address::of_socket(listeners_.back().get()));
    }
  }

  std::vector<Descriptor> connect(int rank) { return connect(rank, secret_); }
  std::vector<Descriptor> connect(int rank, const JobSecret& secret) {
    Connector connector(
        secret, rank, std::move(listeners_[static_cast<std::size_t>(rank)]), addresses_,
        {.deadline = Connector::Clock::now() + limit_, .handshake = milliseconds(500)});
    return connector.connect_all();
  }
  const Address& address(int rank) const { return addresses_[static_cast<std::size_t>(rank)]; }
  const JobSecret& secret() const { return secret_; }

 private:
  JobSecret secret_;
  milliseconds limit_;
  std::vector<Descriptor> listeners_;
  std::vector<Address> addresses_;
};

/// Connects `number` ranks, which all get through within `limit` seconds.
void check_connecting(Job& job, int number, double limit) {
  const double begin = now_seconds();
  std::vector<std::vector<Descriptor>> all(static_cast<std::size_t>(number));
  test::run_threads(number,
                    [&](int rank) { all[static_cast<std::size_t>(rank)] = job.connect(rank); });
  EXPECT_LT(now_seconds() - begin, limit);
  for (int rank = 0; rank < number; ++rank) {
    for (int other = 0; other < number; ++other) {
      EXPECT_EQ(all[static_cast<std::size_t>(rank)][static_cast<std::size_t>(other)].valid(),
                rank != other);
    }
  }
}

Descriptor stranger_at(const Address& address) {
  Descriptor socket = begin_to_connect(address);
  pollfd connected{.fd = socket.get(), .events = POLLOUT, .revents = 0};
  ::poll(&connected, 1, 1000);
  return socket;
}

TEST(Connector, ConnectsEachWithEach) {
  for (const int ranks : {1, 2, 3, 8}) {
    Job job(ranks);
    check_connecting(job, ranks, 10);
  }
}

TEST(Connector, AStrangerWhoIsFirstAndSilentHoldsNobodyUp) {
  Job job(3);
  std::vector<Descriptor> strangers;
  for (const int rank : {0, 1, 2, 0, 1}) strangers.push_back(stranger_at(job.address(rank)));
  check_connecting(job, 3, 2);
}

TEST(Connector, AThousandStrangersHoldNobodyUp) {
  Job job(3);
  std::atomic<bool> stop = false;
  std::jthread crowd([&] {
    for (int i = 0; i < 1000 && !stop; ++i) stranger_at(job.address(i % 2));
  });
  std::vector<Descriptor> waiting;
  for (int i = 0; i < 200; ++i) waiting.push_back(begin_to_connect(job.address(i % 2)));
  check_connecting(job, 3, 10);
  stop = true;
}

TEST(Connector, GarbageIsSentAway) {
  Job job(2);
  std::mt19937_64 random(1);
  std::vector<Descriptor> strangers;
  for (int i = 0; i < 50; ++i) {
    strangers.push_back(stranger_at(job.address(0)));
    std::vector<std::byte> garbage(1 + random() % 300);
    for (std::byte& one : garbage) one = static_cast<std::byte>(random());
    send_some(strangers.back(), garbage);
    if (i % 3 == 0) strangers.back().reset();
  }
  check_connecting(job, 2, 5);
}

/// Of the strangers nobody is asked for anything beyond the handshake, and no socket stays open.
TEST(Connector, NothingListensOnceAllAreConnected) {
  Job job(2);
  const Descriptor stranger = stranger_at(job.address(0));
  check_connecting(job, 2, 5);
  const Descriptor late = begin_to_connect(job.address(0));
  std::this_thread::sleep_for(milliseconds(50));
  EXPECT_EQ(connection_error(late), ECONNREFUSED);
  std::vector<std::byte> room(1000);
  std::optional<std::size_t> got = 0;
  std::size_t sum = 0;
  for (int tries = 0; tries < 100 && got; ++tries) {
    got = receive_some(stranger, room);
    sum += got.value_or(0);
    std::this_thread::sleep_for(milliseconds(1));
  }
  EXPECT_FALSE(got) << "the connection of the stranger stays open";
  EXPECT_LE(sum, 24U);
}

TEST(Connector, AWrongSecretDoesNotGetIn) {
  Job job(2, milliseconds(700));
  const auto wrong = JobSecret::make(random_bytes(), "test", 2);
  test::run_threads(2, [&](int rank) {
    try {
      job.connect(rank, rank == 0 ? job.secret() : wrong);
      ADD_FAILURE() << "rank " << rank << " is connected";
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::communication);
      EXPECT_EQ(error.where().rank, 1 - rank) << error.what();
    }
  });
}

TEST(Connector, TwoProcessesOfOneRankAreAnError) {
  Job job(3, std::chrono::seconds(5));  // rank 2 never comes
  Job other(3, std::chrono::seconds(5));
  std::atomic<int> refused = 0;
  test::run_threads(3, [&](int thread) {
    try {
      if (thread == 0) {
        job.connect(0);
      } else {
        std::this_thread::sleep_for(milliseconds(thread * 100));
        Connector connector(job.secret(), 1, listen_at(Address::of("127.0.0.1", 0)),
                            {job.address(0)},
                            {.deadline = Connector::Clock::now() + std::chrono::seconds(1)});
        connector.connect_all();
      }
    } catch (const Error& error) {
      if (error.kind() != ErrorKind::usage) return;
      EXPECT_NE(error.happened().find("rank 1"), std::string::npos) << error.what();
      ++refused;
    }
  });
  EXPECT_EQ(refused, 2) << "the listener and the second of them";
}

TEST(Connector, NamesTheRanksThatDoNotCome) {
  Job job(4, milliseconds(200));
  test::run_threads(2, [&](int rank) {
    try {
      job.connect(rank);
      ADD_FAILURE() << "rank " << rank << " is connected";
    } catch (const Error& error) {
      EXPECT_NE(error.happened().find("2, 3"), std::string::npos) << error.what();
      EXPECT_EQ(error.where().rank, 2);
    }
  });
}

}  // namespace
}  // namespace forebay::net
