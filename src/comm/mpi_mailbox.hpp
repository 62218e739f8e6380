// Messages that are sent and received in the background, on one tag of an MPI communicator.
//
// MPI works on buffers for as long as a transfer lasts, so they stay put in lists of this object.
// What is still moving when the object ends cannot be taken back: then its buffers are leaked, and
// settle() says so, for MPI must not be finalized after that.
//
// Receiving starts with a matched probe, and ends when a later call finds all bytes there. So a
// long message, which moves only while its sender calls MPI, never makes the receiver wait inside
// MPI.
#pragma once

#include <chrono>
#include <cstddef>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <vector>

#include "forebay/mpi.hpp"

namespace forebay {

/// Thread-safe where MPI_THREAD_MULTIPLE was granted. Local.
class MpiMailbox {
 public:
  /// `comm` outlives this object.
  MpiMailbox(MPI_Comm comm, int tag) : comm_(comm), tag_(tag) {}

  void send(int to, std::span<const std::byte> message);
  /// The next message of `from`; with MPI_ANY_SOURCE of anybody (then for all calls).
  std::optional<std::vector<std::byte>> receive(int from);
  /// Waits until nothing is moving any more, at most `limit`; tells whether it is so.
  bool settle(std::chrono::milliseconds limit);
  /// Leaves all buffers to MPI for as long as the process lives.
  void leak();

 private:
  struct Transfer {
    MPI_Request request = MPI_REQUEST_NULL;
    std::vector<std::byte> message;
  };
  struct Transfers {
    std::list<Transfer> outgoing;
    std::map<int, Transfer> incoming;  ///< by the `from` that was asked for
  };

  static bool complete(Transfer& transfer);
  bool begin_to_receive(int from);
  bool all_complete();

  MPI_Comm comm_;
  int tag_;
  std::mutex mutex_;
  std::unique_ptr<Transfers> transfers_ = std::make_unique<Transfers>();
};

}  // namespace forebay
