// Any bytes as what another rank sends: a handshake takes none of it for a rank of the job, and a
// stream of frames is refused with an Error or cut into frames that lie within it.
//
//   u8 how   the rest: the bytes; `how` chooses the side of the handshake, and how they are cut
#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <span>
#include <vector>

#include "comm/net/frame.hpp"
#include "comm/net/handshake.hpp"
#include "forebay/error.hpp"

namespace {

using namespace forebay;
using namespace forebay::net;

constexpr int kSource = 3;
constexpr std::size_t kMostMemory = std::size_t{1} << 20;

void require(bool holds) {
  if (!holds) std::abort();
}

/// Neither side knows the key, so no bytes can get in.
void shake_hands(std::span<const std::byte> bytes, std::uint8_t how) {
  const auto secret = JobSecret::make(random_bytes(), "fuzz", 8);
  const std::vector<bool> connected(8, (how & 2) != 0);
  auto side = (how & 1) != 0 ? Handshake::listen(secret, 1, random_bytes(), connected)
                             : Handshake::connect(secret, 4, 1, random_bytes());
  while (!bytes.empty() && side.wants() > 0) {
    const auto part = bytes.first(std::min<std::size_t>(bytes.size(), 1 + how % 50));
    const auto taken = std::min(part.size(), side.wants());
    side.received(part);
    require(side.to_send().size() <= 40);
    side.sent(side.to_send().size() / 2);
    bytes = bytes.subspan(taken);
  }
  require(side.verdict() != Verdict::welcome && side.verdict() != Verdict::duplicate);
}

/// Gives each payload memory of exactly its size, up to a limit.
struct Taker : FrameSink {
  std::span<std::byte> begin(const FrameHeader& header) override {
    if (header.bytes > kMostMemory) throw Error(ErrorKind::io, "too much", "");
    payload.assign(header.bytes, std::byte{0});
    return payload;
  }
  void end(const FrameHeader& header) override {
    require(header.source == kSource && header.channel < kChannels &&
            header.bytes <= kLongestFrame);
    sum += sizeof(header) + header.bytes;
  }
  std::vector<std::byte> payload;
  std::size_t sum = 0;
};

void cut_frames(std::span<const std::byte> bytes, std::size_t step) {
  Taker taker;
  FrameReader reader(kSource, taker);
  std::size_t given = 0;
  while (given < bytes.size()) {
    std::size_t moved = 0;
    const std::size_t most = std::min(step, bytes.size() - given);
    for (const iovec& part : reader.room()) {
      const std::size_t here = std::min(part.iov_len, most - moved);
      if (here > 0) std::memcpy(part.iov_base, bytes.data() + given + moved, here);
      moved += here;
      if (here < part.iov_len) break;
    }
    require(moved > 0);
    given += moved;
    reader.took(moved);
    if (step % 7 == 3) {  // whoever waited has given up
      taker.payload.assign(taker.payload.size(), std::byte{1});
      reader.redirect(taker.payload);
    }
  }
  require(taker.sum <= bytes.size());
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const auto bytes = std::as_bytes(std::span(data, size)).subspan(1);
  shake_hands(bytes, data[0]);
  try {
    cut_frames(bytes, 1 + std::size_t{data[0]} * data[0]);
  } catch (const Error&) {
    // The expected answer to most inputs.
  }
  return 0;
}
