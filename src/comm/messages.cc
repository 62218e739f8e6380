#include "comm/messages.hpp"

#include <fmt/format.h>

#include "comm/waiting.hpp"

namespace forebay {

void require_sendable(std::size_t bytes) {
  if (bytes <= kLongestMessage) return;
  throw Error(ErrorKind::usage, fmt::format("a message of {} bytes is too long", bytes),
              fmt::format("send parts of at most {} bytes", kLongestMessage));
}

void refuse_message(std::span<const std::byte> message, std::string_view about, std::size_t bytes) {
  throw Error(
      ErrorKind::communication,
      fmt::format("a message about {} has {} bytes instead of {}", about, message.size(), bytes),
      "this is a fault of Forebay: please report it");
}

std::optional<std::vector<std::byte>> receive(Communicator& comm, int from,
                                              std::chrono::milliseconds limit,
                                              const GiveUp& give_up, const std::string& what) {
  const WaitPolicy policy{.timeout = limit};
  Waiting waiting(policy, what);
  for (;;) {
    auto message = comm.try_receive(from);
    if (message) return message;
    if (give_up && give_up()) return std::nullopt;
    waiting.step();
  }
}

}  // namespace forebay
