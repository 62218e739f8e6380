// Frames on their way out of one connection. What is sent is not copied: the queue points to it.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <list>
#include <memory>
#include <span>

#include "comm/net/frame.hpp"
#include "comm/net/socket.hpp"

namespace forebay::net {

/// One frame. Its payload stays where it is until `done`; `owner`, if any, is held so long.
struct Outgoing {
  FrameHeader header;
  std::span<const std::byte> payload;
  std::shared_ptr<const void> owner;
  std::size_t sent = 0;  ///< bytes, of header and payload
  std::atomic<bool> done = false;

  std::size_t bytes() const { return sizeof(header) + payload.size(); }
  /// From now on the frame has a copy of what is still to be sent of the payload.
  void copy_rest();
};

/// Not synchronized.
class SendQueue {
 public:
  enum class State : std::uint8_t { empty, blocked, broken };

  bool empty() const { return frames_.empty(); }
  void push(std::shared_ptr<Outgoing> frame) { frames_.push_back(std::move(frame)); }
  /// Sends what the connection takes now, some MB at most. `blocked`: there is more to send.
  /// `broken`: nothing can be sent any more, and the queue was cleared.
  State flush(const Descriptor& socket);
  void clear();

 private:
  bool send_once(const Descriptor& socket, std::size_t& sent);
  void count(std::size_t sent);

  std::list<std::shared_ptr<Outgoing>> frames_;
};

}  // namespace forebay::net
