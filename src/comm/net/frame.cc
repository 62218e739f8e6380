#include "comm/net/frame.hpp"

#include <algorithm>
#include <cstring>

#include "forebay/error.hpp"

namespace forebay::net {

FrameHeader FrameHeader::make(int source, const Port& port, std::size_t bytes) {
  return {.channel = static_cast<std::uint32_t>(port.channel),
          .source = static_cast<std::uint32_t>(source),
          .communicator = port.communicator,
          .tag = port.tag,
          .bytes = bytes};
}

void check_header(const FrameHeader& header, int source) {
  const bool right = header.magic == FrameHeader::kMagic && header.channel < kChannels &&
                     header.source == static_cast<std::uint32_t>(source) && header.reserved == 0 &&
                     header.bytes <= kLongestFrame;
  if (right) return;
  throw Error(ErrorKind::communication, "what it sends is no message of Forebay",
              "start all ranks with the same version of Forebay, on machines of one kind",
              {.rank = source});
}

std::span<const iovec> FrameReader::room() {
  const iovec stage{.iov_base = stage_.data() + staged_, .iov_len = kStage - staged_};
  if (!in_frame_) {
    room_[0] = stage;
    return std::span(room_).first(1);
  }
  const auto rest = payload_.subspan(filled_);
  room_ = {iovec{.iov_base = rest.data(), .iov_len = rest.size()}, stage};
  return room_;
}

void FrameReader::took(std::size_t bytes) {
  if (in_frame_) {
    const std::size_t direct = std::min(bytes, payload_.size() - filled_);
    filled_ += direct;
    bytes -= direct;
    if (filled_ == payload_.size()) {
      in_frame_ = false;
      sink_.end(header_);
    }
  }
  staged_ += bytes;
  read_stage();
}

void FrameReader::read_stage() {
  std::size_t used = 0;
  while (!in_frame_ && staged_ - used >= sizeof(header_)) {
    std::memcpy(&header_, stage_.data() + used, sizeof(header_));
    used += sizeof(header_);
    if (!begin_frame()) continue;
    const std::size_t here = std::min(staged_ - used, payload_.size());
    std::memcpy(payload_.data(), stage_.data() + used, here);
    used += here;
    filled_ = here;
    if (filled_ < payload_.size()) break;
    in_frame_ = false;
    sink_.end(header_);
  }
  if (used == 0) return;
  staged_ -= used;
  std::memmove(stage_.data(), stage_.data() + used, staged_);
}

/// Whether the frame has a payload, for which there is a place now.
bool FrameReader::begin_frame() {
  check_header(header_, source_);
  if (header_.bytes == 0) {
    sink_.end(header_);
    return false;
  }
  payload_ = sink_.begin(header_);
  in_frame_ = true;
  filled_ = 0;
  return true;
}

}  // namespace forebay::net
