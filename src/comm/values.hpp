// Single values across ranks, for the many places where all ranks tell or hear one number.
#pragma once

#include <span>
#include <type_traits>
#include <vector>

#include "forebay/communicator.hpp"

namespace forebay {

/// Rank `root`'s value on every rank. Collective.
template <typename T>
requires std::is_trivially_copyable_v<T>
void share_value(Communicator& comm, T& value, int root = 0) {
  comm.broadcast(std::as_writable_bytes(std::span(&value, 1)), root);
}

/// Every rank's value, by rank. Collective.
template <typename T>
requires std::is_trivially_copyable_v<T> std::vector<T> gather_all(Communicator& comm,
                                                                   const T& mine) {
  std::vector<T> all(static_cast<std::size_t>(comm.size()));
  comm.all_gather(std::as_bytes(std::span(&mine, 1)), std::as_writable_bytes(std::span(all)));
  return all;
}

}  // namespace forebay
