// Which transport moves samples between nodes: tried out at the start, as libraries and networks
// differ. Some cannot make a window at all, some move nothing while the owner is outside MPI, and
// either may be several times faster than the other.
//
// Half of the nodes read from the others, whose main threads are outside MPI meanwhile; then the
// other way round. What is slower on its slowest rank is not taken, nor what fails on any rank.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "comm/progress_thread.hpp"
#include "comm/remote_memory.hpp"
#include "forebay/communicator.hpp"
#include "forebay/error.hpp"

namespace forebay {

/// A reader that the progress thread serves.
class ServedReader {
 public:
  ServedReader(std::unique_ptr<RemoteReader> reader, ProgressThread& progress,
               std::chrono::microseconds longest_rest, std::function<void(const Error&)> failed);

  RemoteReader& operator*() const { return *reader_; }
  RemoteReader* operator->() const { return reader_.get(); }

 private:
  std::shared_ptr<RemoteReader> reader_;
  ProgressThread::Registration serving_;  ///< goes first
};

struct TransportChoice {
  std::unique_ptr<ServedReader> reader;  ///< empty where all ranks share one node
  std::string why;                       ///< which and why, for explain()
};

struct TransportOptions {
  std::optional<Transport> forced;
  std::chrono::microseconds longest_rest{};
  /// Told, at most once, when the progress thread cannot serve any more.
  std::function<void(const Error&)> failed;
};

/// The first bytes of `memory` are overwritten. Takes some 150 ms where there is a choice.
/// Throws unsupported, on all ranks, when there is no transport, or not the forced one. Collective.
TransportChoice choose_transport(Communicator& comm, RemoteMemory& memory, ProgressThread* progress,
                                 const TransportOptions& options);

}  // namespace forebay
