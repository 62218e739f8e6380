// What moves between two ranks: frames, one after the other.
//
//   0        4         8         12        16            24        32        40
//   | magic  | channel | source  | 0       | communicator | tag     | bytes   |  the payload ...
//
// Numbers are in the byte order of the machine, which is the same for all ranks; `magic` tells
// where it is not. Messages of one (source, communicator, channel, tag) keep their order.
//
// Connections are authenticated before the first frame, so what comes is from a rank of this job.
// Every number is checked nevertheless: a rank of another version must end in an error, not a
// crash.
#pragma once

#include <sys/uio.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <tuple>

#include "core/non_copyable.hpp"

namespace forebay::net {

enum class Channel : std::uint32_t {
  collective,    ///< parts of collective operations; the tag numbers the operation
  message,       ///< Communicator::send
  notice,        ///< Communicator::send_notice
  read_request,  ///< a list of places in the memory of the receiver
  read_answer,   ///< one place of such a list
  farewell,      ///< the sender ends in good order: nothing comes after it
};
inline constexpr std::uint32_t kChannels = 6;

/// Where a message belongs.
struct Port {
  std::uint64_t communicator = 0;
  Channel channel = Channel::collective;
  std::uint64_t tag = 0;
  bool operator<(const Port& other) const {
    return std::tie(communicator, channel, tag) <
           std::tie(other.communicator, other.channel, other.tag);
  }
};

struct FrameHeader {
  static constexpr std::uint32_t kMagic = 0x31764246;  ///< "FBv1" in little endian

  std::uint32_t magic = kMagic;
  std::uint32_t channel = 0;
  std::uint32_t source = 0;
  std::uint32_t reserved = 0;
  std::uint64_t communicator = 0;
  std::uint64_t tag = 0;
  std::uint64_t bytes = 0;

  static FrameHeader make(int source, const Port& port, std::size_t bytes);
  Port port() const { return {communicator, static_cast<Channel>(channel), tag}; }
};
static_assert(sizeof(FrameHeader) == 40);

/// The longest payload: longer messages go in parts.
inline constexpr std::size_t kLongestFrame = std::size_t{1} << 30;

/// Throws communication for a header that rank `source` cannot have sent.
void check_header(const FrameHeader& header, int source);

/// Takes the frames of one connection.
class FrameSink {
 public:
  virtual ~FrameSink() = default;
  /// Where the payload goes: header.bytes bytes, which stay until redirect() or end(). Not called
  /// for frames without payload.
  virtual std::span<std::byte> begin(const FrameHeader& header) = 0;
  virtual void end(const FrameHeader& header) = 0;
};

/// Cuts a stream of bytes into frames. What is there of a payload goes to its place without a copy,
/// but for what came along with the header. Not synchronized.
class FrameReader : private NonCopyable {
 public:
  FrameReader(int source, FrameSink& sink) : source_(source), sink_(sink) {}

  /// Where the next bytes are to be received, in this order.
  std::span<const iovec> room();
  /// `bytes` were received there. Throws what check_header() and the sink throw; the reader is then
  /// of no more use.
  void took(std::size_t bytes);
  /// The rest of the payload that is on its way goes elsewhere: as much memory as the whole.
  void redirect(std::span<std::byte> payload) { payload_ = payload; }

 private:
  static constexpr std::size_t kStage = 4096;

  void read_stage();
  bool begin_frame();

  int source_;
  FrameSink& sink_;
  FrameHeader header_;
  bool in_frame_ = false;
  std::span<std::byte> payload_;
  std::size_t filled_ = 0;  ///< of payload_
  std::array<std::byte, kStage> stage_{};
  std::size_t staged_ = 0;  ///< bytes in stage_
  std::array<iovec, 2> room_{};
};

}  // namespace forebay::net
