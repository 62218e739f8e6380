#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <climits>
#include <cstdint>
#include <optional>
#include <vector>

#include "comm/nonblocking.hpp"
#include "comm/values.hpp"
#include "core/limits.hpp"
#include "forebay/communicator.hpp"
#include "forebay/error.hpp"
#include "forebay/trace.hpp"

namespace forebay {
namespace {

std::span<std::byte> writable_bytes(std::string& text) {
  return std::as_writable_bytes(std::span(text.data(), text.size()));
}

std::optional<Error> failure_of(const std::function<void()>& step, int rank) {
  try {
    step();
    return {};
  } catch (const Error& error) {
    return error.at_rank(rank);
  } catch (const std::exception& error) {
    return as_error(error, "opening this").at_rank(rank);
  }
}

/// For each rank, whether it failed. A rank that stopped waiting for others has waited enough.
std::vector<std::uint8_t> ranks_that_failed(Communicator& comm, const std::optional<Error>& mine) {
  constexpr std::chrono::milliseconds kAfterWaiting{2000};
  const bool waited = mine && mine->kind() == ErrorKind::communication;
  const auto timeout = comm.timeout();
  if (waited) comm.set_timeout(std::min(timeout, kAfterWaiting));
  try {
    auto all = gather_all(comm, std::uint8_t{mine.has_value()});
    comm.set_timeout(timeout);
    return all;
  } catch (const Error& late) {
    comm.set_timeout(timeout);
    if (mine && late.kind() == ErrorKind::communication) throw *mine;
    throw;
  }
}

}  // namespace

std::string broadcast_text(Communicator& comm, const std::string& text, int root) {
  std::uint64_t size = text.size();
  share_value(comm, size, root);
  std::string result = comm.rank() == root ? text : std::string(size, '\0');
  if (size > 0) comm.broadcast(writable_bytes(result), root);
  return result;
}

void collectively(Communicator& comm, const std::function<void()>& step) {
  const std::optional<Error> mine = failure_of(step, comm.rank());
  const auto failed = ranks_that_failed(comm, mine);
  for (int rank = 0; rank < comm.size(); ++rank) {
    if (failed[static_cast<std::size_t>(rank)] != 0) {
      throw parse_error(broadcast_text(comm, mine ? serialize(*mine) : "", rank));
    }
  }
}

void require_agreement(Communicator& comm, const std::string& text, const std::string& what) {
  const std::string first = broadcast_text(comm, text, 0);
  collectively(comm, [&] {
    if (text == first) return;
    throw Error(ErrorKind::usage,
                fmt::format("{} here: {}; on rank 0: {}", what, text.empty() ? "none" : text,
                            first.empty() ? "none" : first),
                "start all ranks with the same arguments");
  });
}

bool everywhere(Communicator& comm, bool holds) {
  const auto all = gather_all(comm, std::uint8_t{holds});
  return std::ranges::all_of(all, [](std::uint8_t one) { return one != 0; });
}

void write_trace_of_ranks(Communicator& comm, const Trace& trace, const std::string& path) {
  const std::string mine = trace.events();
  std::vector<std::string> all;
  for (const auto& bytes : comm.gather(std::as_bytes(std::span(mine)), 0)) {
    all.emplace_back(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  }
  collectively(comm, [&] {
    if (comm.rank() == 0) write_trace(path, all);
  });
}

void require_gatherable(std::size_t mine, std::size_t all, int ranks) {
  if (all == mine * static_cast<std::size_t>(ranks)) return;
  throw Error(ErrorKind::usage,
              fmt::format("{} bytes of each of {} ranks do not make {}", mine, ranks, all), "");
}

void require_exchangeable(std::size_t mine, std::size_t theirs, int ranks) {
  if (mine == theirs && mine % static_cast<std::size_t>(ranks) == 0) return;
  throw Error(
      ErrorKind::usage,
      fmt::format("{} bytes cannot be dealt to {} ranks and become {}", mine, ranks, theirs), "");
}

int require_countable(std::size_t elements) {
  if (elements <= static_cast<std::size_t>(INT_MAX)) return static_cast<int>(elements);
  throw Error(ErrorKind::usage, fmt::format("{} elements are too many for one operation", elements),
              "move them in parts");
}

}  // namespace forebay
