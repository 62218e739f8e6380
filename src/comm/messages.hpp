// Messages between the helper threads of ranks: what is the same over every communicator.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstring>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "forebay/communicator.hpp"

namespace forebay {

/// The longest message that Communicator::send takes: below the limit of MPI's 32-bit counts.
inline constexpr std::size_t kLongestMessage = std::size_t{1} << 30;

/// Throws usage when a message of `bytes` is too long to send.
void require_sendable(std::size_t bytes);

/// Waits for the next message of rank `from`, in growing steps and without burning a core. Empty
/// when `give_up` said so. `what` completes "waited 600 s for ...".
/// Throws communication when none has come within `limit`. Local.
std::optional<std::vector<std::byte>> receive(Communicator& comm, int from,
                                              std::chrono::milliseconds limit,
                                              const GiveUp& give_up, const std::string& what);

/// `value` as a message. Valid as long as `value` is.
template <typename T>
requires std::is_trivially_copyable_v<T> std::span<const std::byte> message_of(const T& value) {
  return std::as_bytes(std::span(&value, 1));
}

/// Throws communication: `message`, which is about `about`, is none of `bytes` bytes.
[[noreturn]] void refuse_message(std::span<const std::byte> message, std::string_view about,
                                 std::size_t bytes);

/// The value that was sent as `message`. Throws communication when it has another length.
template <typename T>
requires std::is_trivially_copyable_v<T> T value_in(std::span<const std::byte> message,
                                                    std::string_view about) {
  T value;
  if (message.size() != sizeof(value)) refuse_message(message, about, sizeof(value));
  std::memcpy(&value, message.data(), sizeof(value));
  return value;
}

}  // namespace forebay
