// What all ranks tell or hear at once: one number, one text that must be equal on all, one
// timeline.
//
// Ranks that were started with different settings would wait for each other, or deliver samples of
// different orders, without anybody noticing. They compare what must be equal before they begin.
#pragma once

#include <span>
#include <string>
#include <type_traits>
#include <vector>

#include "forebay/communicator.hpp"

namespace forebay {

class Trace;

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

/// Throws usage on all ranks when the text of any rank differs from that of rank 0; `what` names
/// what the text says, for the message. Collective.
void require_agreement(Communicator& comm, const std::string& text, const std::string& what);

/// Whether `holds` on all ranks. Collective.
bool everywhere(Communicator& comm, bool holds);

/// Rank 0 writes the events of all ranks to `path`. Collective; throws io, on all ranks.
void write_trace_of_ranks(Communicator& comm, const Trace& trace, const std::string& path);

}  // namespace forebay
