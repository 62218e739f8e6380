#include "pfs/model.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <random>

#include "forebay/error.hpp"
#include "tests/support/scale.hpp"

namespace forebay::pfs {
namespace {

using std::chrono::milliseconds;

constexpr std::int64_t kMs = 1'000'000;

// One byte takes a microsecond, so that times can be read off.
ModelOptions slow(std::uint64_t servers) {
  return {.servers = servers,
          .stripe = 4096,
          .bandwidth = 1'000'000,
          .latency = milliseconds(1),
          .seek_penalty = milliseconds(2)};
}

/// Servers that read 8000 bytes ahead for `streams` readers.
ModelOptions reading_ahead(std::uint64_t streams) {
  ModelOptions options = slow(1);
  options.stripe = std::uint64_t{1} << 20;
  options.read_ahead = 8000;
  options.streams = streams;
  return options;
}

/// Readers of neighbouring parts take turns with requests of 1000 bytes. Returns when all is there.
std::int64_t read_in_turns(Model& model, unsigned readers) {
  std::int64_t end = 0;
  for (unsigned i = 0; i < 36; ++i) {
    for (unsigned reader = 0; reader < readers; ++reader) {
      const std::uint64_t offset = reader * 50'000U + i * 1000U;
      end = std::max(end, model.submit({.file = 0, .offset = offset, .length = 1000}, 0).time_ns);
    }
  }
  return end;
}

double total_seeks(const Model& model) {
  double seeks = 0;
  for (const Tally& tally : model.tallies()) seeks += static_cast<double>(tally.seeks);
  return seeks;
}

TEST(PfsModel, ARequestTakesSeekTransferAndLatency) {
  Model model(slow(1));
  const Answer answer = model.submit({.file = 0, .offset = 0, .length = 4000}, 10 * kMs);
  EXPECT_EQ(answer.time_ns, (10 + 2 + 4 + 1) * kMs);
  EXPECT_EQ(answer.servers.seeks, 1);
  EXPECT_DOUBLE_EQ(answer.servers.busy_seconds, 0.006);
  EXPECT_DOUBLE_EQ(answer.servers.queued_seconds, 0);
}

TEST(PfsModel, AdjacentRequestsSeekOnceAndOverlapTheirLatency) {
  Model model(slow(1));
  model.submit({.file = 0, .offset = 0, .length = 4000}, 0);
  const Answer second = model.submit({.file = 0, .offset = 4000, .length = 4000}, 0);
  EXPECT_EQ(second.time_ns, (2 + 4 + 4 + 1) * kMs);
  EXPECT_EQ(second.servers.seeks, 0);
  EXPECT_DOUBLE_EQ(second.servers.queued_seconds, 0.006);
}

TEST(PfsModel, AnIdleServerKeepsItsPlace) {
  Model model(slow(1));
  model.submit({.file = 0, .offset = 0, .length = 1000}, 0);
  const Answer later = model.submit({.file = 0, .offset = 1000, .length = 1000}, 500 * kMs);
  EXPECT_EQ(later.servers.seeks, 0);
  EXPECT_EQ(later.time_ns, (500 + 1 + 1) * kMs);
}

TEST(PfsModel, GapsBackwardStepsAndOtherFilesSeek) {
  Model model(slow(1));
  for (const auto& [file, offset] : std::vector<std::pair<std::uint64_t, std::uint64_t>>{
           {0, 0}, {0, 1000}, {0, 2001}, {0, 1000}, {1, 2000}, {0, 3000}}) {
    model.submit({.file = file, .offset = offset, .length = 1000}, 0);
  }
  EXPECT_EQ(total_seeks(model), 5);  // all but the second
}

TEST(PfsModel, TwoInterleavedReadersSeekForEveryRequest) {
  Model model(slow(4));
  const int rounds = 32;
  for (int i = 0; i < rounds; ++i) {
    model.submit({.file = 0, .offset = i * 4096U, .length = 4096}, 0);
    model.submit({.file = 0, .offset = (1U << 20) + i * 4096U, .length = 4096}, 0);
  }
  EXPECT_EQ(total_seeks(model), 2 * rounds);
}

TEST(PfsModel, OneReaderAcrossStripesSeeksOnceAServer) {
  Model model(slow(4));
  for (unsigned i = 0; i < 64; ++i) {
    model.submit({.file = 3, .offset = i * 1000U, .length = 1000}, 0);
  }
  EXPECT_EQ(total_seeks(model), 4);
}

TEST(PfsModel, ServersWorkAtTheSameTime) {
  Model model(slow(4));
  const Answer answer = model.submit({.file = 0, .offset = 0, .length = 4 * 4096}, 0);
  EXPECT_EQ(answer.time_ns, 2 * kMs + 4096 * 1000 + 1 * kMs);
  EXPECT_EQ(answer.servers.seeks, 4);
  for (const Tally& tally : model.tallies()) {
    EXPECT_EQ(tally.requests, 1);
    EXPECT_EQ(tally.bytes, 4096);
    EXPECT_EQ(tally.sizes[12], 1);
  }
}

TEST(PfsModel, NeighbouringStripesOfAServerAreOneRequest) {
  const auto pieces = split(slow(2), {.file = 1, .offset = 100, .length = 4 * 4096});
  ASSERT_EQ(pieces.size(), 2);
  EXPECT_EQ(pieces[0].server, 1);
  EXPECT_EQ(pieces[0].offset, 100);
  EXPECT_EQ(pieces[0].length, 2 * 4096);  // stripes 0, 2 and the first bytes of 4
  EXPECT_EQ(pieces[1].server, 0);
  EXPECT_EQ(pieces[1].offset, 0);
  EXPECT_EQ(pieces[1].length, 2 * 4096);
}

TEST(PfsModel, EveryByteHasOnePlace) {
  std::mt19937_64 random(7);
  for (int round = 0; round < test::random_cases(200); ++round) {
    ModelOptions options = slow(1 + random() % 9);
    options.stripe = 4096 * (1 + random() % 5);
    const Read read{
        .file = random(), .offset = random() % 200'000, .length = 1 + random() % 90'000};
    // Byte by byte, as the header says; then as runs on each server.
    std::map<std::size_t, std::pair<std::uint64_t, std::uint64_t>> expected;
    for (std::uint64_t at = read.offset; at < read.offset + read.length; ++at) {
      const std::uint64_t stripe = at / options.stripe;
      const auto server = (read.file % options.servers + stripe) % options.servers;
      const auto place = stripe / options.servers * options.stripe + at % options.stripe;
      const auto [run, fresh] = expected.try_emplace(server, place, 0);
      ASSERT_EQ(run->second.first + run->second.second, place) << "a gap in an object";
      ++run->second.second;
    }
    const auto pieces = split(options, read);
    ASSERT_EQ(pieces.size(), expected.size());
    for (const Piece& piece : pieces) {
      EXPECT_EQ(expected[piece.server], std::pair(piece.offset, piece.length));
    }
  }
}

TEST(PfsModel, AStalledServerHoldsUpWhatQueuesBehindItAndNothingElse) {
  Model model(slow(2));
  const Stall stall{.offset = 10, .duration = std::chrono::seconds(1)};
  model.submit({.file = 0, .offset = 0, .length = 1000, .stall = stall}, 0);
  const Answer behind = model.submit({.file = 0, .offset = 1000, .length = 1000}, 0);
  const Answer beside = model.submit({.file = 0, .offset = 4096, .length = 1000}, 0);
  EXPECT_EQ(behind.time_ns, (1000 + 2 + 1 + 1 + 1) * kMs);
  EXPECT_EQ(beside.time_ns, (2 + 1 + 1) * kMs);
}

TEST(PfsModel, SaturatedServersDeliverTheirBandwidth) {
  ModelOptions options;  // the defaults: 4 x 50 MB/s
  Model model(options);
  std::int64_t end = 0;
  const std::uint64_t size = 400'000'000;
  const std::uint64_t block = 1 << 20;
  for (std::uint64_t at = 0; at < size; at += block) {
    end = std::max(end, model.submit({.file = 0, .offset = at, .length = block}, 0).time_ns);
  }
  EXPECT_NEAR(static_cast<double>(end) * 1e-9, 2.0, 0.05);
}

TEST(PfsModel, AnAnswerDoesNotWaitForWhatIsReadAheadAndTheNextRequestDoes) {
  Model model(reading_ahead(1));
  const Answer first = model.submit({.file = 0, .offset = 0, .length = 1000}, 0);
  EXPECT_EQ(first.time_ns, (2 + 1 + 1) * kMs);
  EXPECT_EQ(first.servers.ahead_bytes, 8000);
  EXPECT_DOUBLE_EQ(first.servers.busy_seconds, 0.011);
  const Answer second = model.submit({.file = 0, .offset = 1000, .length = 8000}, 5 * kMs);
  EXPECT_EQ(second.time_ns, (2 + 1 + 8 + 1) * kMs);
  EXPECT_EQ(second.servers.memory_bytes, 8000);
  EXPECT_EQ(second.servers.seeks, 0);
  EXPECT_DOUBLE_EQ(second.servers.busy_seconds, 0);
}

TEST(PfsModel, ARequestThatIsPartlyInMemoryReadsOnWithoutASeek) {
  Model model(reading_ahead(1));
  model.submit({.file = 0, .offset = 0, .length = 1000}, 0);
  const Answer answer = model.submit({.file = 0, .offset = 8000, .length = 3000}, 0);
  EXPECT_EQ(answer.servers.memory_bytes, 1000);
  EXPECT_EQ(answer.servers.seeks, 0);
  EXPECT_EQ(answer.time_ns, (2 + 1 + 8 + 2 + 1) * kMs);
}

TEST(PfsModel, AsManyReadersAsStreamsReadEveryByteOnceAndMoreReadAheadForNothing) {
  Model enough(reading_ahead(3));
  Model too_few(reading_ahead(2));
  const std::int64_t good = read_in_turns(enough, 3);
  const std::int64_t bad = read_in_turns(too_few, 3);
  // A disk read serves nine requests: 4 rounds of 3 readers, a seek and 9000 bytes each.
  EXPECT_EQ(total_seeks(enough), 12);
  EXPECT_LE(good, (12 * (2 + 9) + 1) * kMs);
  // Three streams take turns in a memory of two: nothing is ever found there.
  EXPECT_EQ(total_seeks(too_few), 108);
  EXPECT_EQ(too_few.tallies().front().memory_bytes, 0);
  EXPECT_EQ(bad, (108 * (2 + 9) - 8 + 1) * kMs);
}

TEST(PfsModel, ReadersThatComeInOrderAreOneStream) {
  Model model(reading_ahead(1));
  for (unsigned reader = 0; reader < 16; ++reader) {
    model.submit({.file = 0, .offset = reader * 4500U, .length = 4500}, 0);
  }
  EXPECT_EQ(total_seeks(model), 1);
  EXPECT_LE(model.tallies().front().ahead_bytes, 16 * 4500U);
}

TEST(PfsModel, WhatIsInMemoryIsNotReadAheadAgain) {
  Model model(reading_ahead(2));
  model.submit({.file = 0, .offset = 5000, .length = 1000}, 0);
  const Answer before = model.submit({.file = 0, .offset = 1000, .length = 1000}, 0);
  EXPECT_EQ(before.servers.ahead_bytes, 3000);
  const Answer on = model.submit({.file = 0, .offset = 2000, .length = 3000}, 0);
  EXPECT_EQ(on.servers.memory_bytes, 3000);
  const Answer further = model.submit({.file = 0, .offset = 5000, .length = 9000}, 0);
  EXPECT_EQ(further.servers.memory_bytes, 9000);
}

TEST(PfsModel, FilesAreDifferentStreams) {
  Model model(reading_ahead(2));
  model.submit({.file = 0, .offset = 0, .length = 1000}, 0);
  const Answer other = model.submit({.file = 1, .offset = 1000, .length = 1000}, 0);
  EXPECT_EQ(other.servers.memory_bytes, 0);
  const Answer same = model.submit({.file = 0, .offset = 1000, .length = 1000}, 0);
  EXPECT_EQ(same.servers.memory_bytes, 1000);
}

TEST(PfsModel, ResetForgetsWhatWasReadAhead) {
  Model model(reading_ahead(1));
  model.submit({.file = 0, .offset = 0, .length = 1000}, 0);
  model.reset();
  EXPECT_EQ(model.submit({.file = 0, .offset = 1000, .length = 1000}, 0).servers.memory_bytes, 0);
}

TEST(PfsModel, ResetCountsAnewAndForgetsWhereServersStood) {
  Model model(slow(1));
  model.submit({.file = 0, .offset = 0, .length = 1000}, 0);
  model.reset();
  EXPECT_EQ(model.tallies().front().requests, 0);
  model.submit({.file = 0, .offset = 1000, .length = 1000}, 0);
  EXPECT_EQ(total_seeks(model), 1);
}

TEST(PfsModel, RefusesWhatCannotBeKeptUnlessForced) {
  const auto refuses = [](ModelOptions options, bool force) {
    try {
      check(options, force);
      return false;
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::usage);
      return true;
    }
  };
  EXPECT_FALSE(refuses({}, false));
  EXPECT_TRUE(refuses({.bandwidth = 50'000'001}, false));
  EXPECT_FALSE(refuses({.bandwidth = 50'000'001}, true));
  EXPECT_TRUE(refuses({.latency = std::chrono::microseconds(999)}, false));
  EXPECT_FALSE(refuses({.latency = std::chrono::microseconds(0)}, true));
  EXPECT_TRUE(refuses({.servers = 0}, true));
  EXPECT_TRUE(refuses({.servers = 1025}, true));
  EXPECT_TRUE(refuses({.stripe = 4095}, true));
  EXPECT_TRUE(refuses({.bandwidth = 0}, true));
  EXPECT_TRUE(refuses({.servers = 1024, .bandwidth = UINT64_MAX}, true));
  EXPECT_FALSE(refuses({.read_ahead = 1U << 20}, false));
  EXPECT_TRUE(refuses({.read_ahead = (1U << 30) + 1}, true));
  EXPECT_TRUE(refuses({.read_ahead = 1U << 20, .streams = 0}, true));
  EXPECT_TRUE(refuses({.streams = 1025}, true));
}

}  // namespace
}  // namespace forebay::pfs
