#include "comm/net/send_queue.hpp"

#include <sys/uio.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <vector>

namespace forebay::net {
namespace {

constexpr std::size_t kMostParts = 64;
constexpr int kMostCalls = 8;

/// Appends what is left of [begin, begin + size) behind its first `skip` bytes, and counts these
/// off.
void add_part(const void* begin, std::size_t size, std::size_t& skip, std::span<iovec> parts,
              std::size_t& count) {
  const std::size_t left_out = std::min(skip, size);
  skip -= left_out;
  if (left_out == size) return;
  auto* const rest = static_cast<const std::byte*>(begin) + left_out;
  parts[count++] = {.iov_base = const_cast<std::byte*>(rest), .iov_len = size - left_out};
}

}  // namespace

void Outgoing::copy_rest() {
  const std::size_t gone = std::max(sent, sizeof(header)) - sizeof(header);
  auto rest = std::make_shared<std::vector<std::byte>>(
      payload.begin() + static_cast<std::ptrdiff_t>(gone), payload.end());
  // Where a part of the payload was sent, the header was, and it is the rest that is left of all.
  if (gone > 0) sent = sizeof(header);
  payload = *rest;
  owner = std::move(rest);
}

SendQueue::State SendQueue::flush(const Descriptor& socket) {
  for (int call = 0; call < kMostCalls && !frames_.empty(); ++call) {
    std::size_t sent = 0;
    if (!send_once(socket, sent)) {
      clear();
      return State::broken;
    }
    if (sent == 0) break;
    count(sent);
  }
  return frames_.empty() ? State::empty : State::blocked;
}

/// False when the connection is broken.
bool SendQueue::send_once(const Descriptor& socket, std::size_t& sent) {
  std::array<iovec, kMostParts> parts{};
  std::size_t used = 0;
  for (const auto& frame : frames_) {
    if (used + 2 > parts.size()) break;
    std::size_t skip = frame->sent;
    add_part(&frame->header, sizeof(frame->header), skip, parts, used);
    add_part(frame->payload.data(), frame->payload.size(), skip, parts, used);
  }
  msghdr message{};
  message.msg_iov = parts.data();
  message.msg_iovlen = used;
  const ssize_t result = ::sendmsg(socket.get(), &message, MSG_NOSIGNAL | MSG_DONTWAIT);
  if (result >= 0) {
    sent = static_cast<std::size_t>(result);
    return true;
  }
  return errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR || errno == ENOBUFS;
}

void SendQueue::count(std::size_t sent) {
  while (sent > 0) {
    Outgoing& frame = *frames_.front();
    const std::size_t here = std::min(sent, frame.bytes() - frame.sent);
    frame.sent += here;
    sent -= here;
    if (frame.sent < frame.bytes()) return;
    frame.owner.reset();
    frame.done.store(true, std::memory_order_release);
    frames_.pop_front();
  }
}

void SendQueue::clear() {
  for (const auto& frame : frames_) {
    frame->owner.reset();
    frame->done.store(true, std::memory_order_release);
  }
  frames_.clear();
}

}  // namespace forebay::net
