#include "comm/net/frame.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <random>
#include <vector>

#include "comm/messages.hpp"
#include "forebay/error.hpp"

namespace forebay::net {
namespace {

struct Kept : FrameSink {
  std::span<std::byte> begin(const FrameHeader& header) override {
    payload.assign(header.bytes, std::byte{0});
    return payload;
  }
  void end(const FrameHeader& header) override {
    EXPECT_EQ(payload.size(), header.bytes);
    frames.emplace_back(header.tag, std::exchange(payload, {}));
  }
  std::vector<std::byte> payload;
  std::vector<std::pair<std::uint64_t, std::vector<std::byte>>> frames;
};

std::size_t receive(FrameReader& reader, std::span<const std::byte> from, std::size_t most) {
  std::size_t moved = 0;
  for (const iovec& part : reader.room()) {
    const std::size_t bytes = std::min({part.iov_len, from.size() - moved, most - moved});
    if (bytes > 0) std::memcpy(part.iov_base, from.data() + moved, bytes);
    moved += bytes;
    if (bytes < part.iov_len) break;
  }
  reader.took(moved);
  return moved;
}

TEST(FrameReader, FindsTheFramesHoweverTheStreamIsCut) {
  std::mt19937_64 random(1);
  for (int round = 0; round < 50; ++round) {
    std::vector<std::byte> stream;
    std::vector<std::vector<std::byte>> sent;
    for (std::uint64_t i = 0; i < 40; ++i) {
      const std::size_t bytes =
          random() % 4 == 0 ? 0 : random() % (random() % 2 == 0 ? 50 : 20'000);
      auto& payload = sent.emplace_back(bytes);
      for (std::byte& one : payload) one = static_cast<std::byte>(random());
      const auto header = FrameHeader::make(3, {.communicator = 1, .tag = i}, bytes);
      const auto head = message_of(header);
      stream.insert(stream.end(), head.begin(), head.end());
      stream.insert(stream.end(), payload.begin(), payload.end());
    }
    Kept kept;
    FrameReader reader(3, kept);
    for (std::span<const std::byte> rest = stream; !rest.empty();) {
      rest = rest.subspan(receive(reader, rest, 1 + random() % (round % 2 == 0 ? 100 : 50'000)));
    }
    ASSERT_EQ(kept.frames.size(), sent.size());
    for (std::size_t i = 0; i < sent.size(); ++i) {
      EXPECT_EQ(kept.frames[i].first, i);
      EXPECT_EQ(kept.frames[i].second, sent[i]);
    }
  }
}

TEST(FrameReader, RefusesWhatNoRankSends) {
  const auto right = FrameHeader::make(3, {.communicator = 1}, 10);
  EXPECT_NO_THROW(check_header(right, 3));
  auto wrong = right;
  wrong.magic ^= 1;
  EXPECT_THROW(check_header(wrong, 3), Error);
  wrong = right;
  wrong.channel = kChannels;
  EXPECT_THROW(check_header(wrong, 3), Error);
  wrong = right;
  wrong.bytes = kLongestFrame + 1;
  EXPECT_THROW(check_header(wrong, 3), Error);
  EXPECT_THROW(check_header(right, 2), Error) << "the source is known";
}

}  // namespace
}  // namespace forebay::net
