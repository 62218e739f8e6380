// Messages between the helper threads of ranks: what is the same over every communicator.
#pragma once

#include <chrono>
#include <cstddef>
#include <optional>
#include <string>
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

}  // namespace forebay
