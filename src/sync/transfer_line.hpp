// Carries out transfers in the order in which they are started, which is the same on all ranks.
//
//   start(A) start(B) start(C)
//   A: copy in -> sum over ranks -> copy out -> handles done
//   B:            copy in -> sum ...             several on their way, handed out in order
//
// A transfer is one or more allreduces of one type and reduction, side by side in one buffer, or
// one operation of another kind. A part without a request is one that this rank does not have: it
// adds neutral elements (zeros; for min and max the largest and the smallest number), and its
// result goes nowhere.
//
// Transfers longer than a buffer move in pieces. Nothing here waits; step() moves everything on.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <vector>

#include "sync/request.hpp"

namespace forebay {

struct TransferPart {
  std::shared_ptr<Request> request = nullptr;  ///< null: neutral elements
  std::uint64_t elements = 0;                  ///< also known where there is no request
};

struct Transfer {
  SyncOperation operation = SyncOperation::allreduce;  ///< no join, no close
  TensorType type = TensorType::float32;
  Reduction reduction = Reduction::sum;
  int root = 0;
  std::vector<TransferPart> parts = {};  ///< more than one of an allreduce only
  std::vector<std::uint64_t> rows = {};  ///< allgather: first extents by rank
  std::uint64_t bytes_of_row = 0;        ///< allgather
};

/// Abstract, so that what decides on transfers can be tested without moving anything.
/// Of the progress thread.
class TransferLine {
 public:
  using Number = std::uint64_t;

  virtual ~TransferLine() = default;
  TransferLine() = default;
  TransferLine(const TransferLine&) = delete;
  TransferLine& operator=(const TransferLine&) = delete;

  /// Returns its number, which counts up from 0. Moves nothing yet.
  virtual Number start(Transfer transfer) = 0;
  /// Moves on what is on its way. Returns when it wants to be called again at the latest (0: at
  /// once). Throws communication.
  virtual std::chrono::microseconds step() = 0;
  /// Whether everything that was started is handed out (or held).
  virtual bool idle() const = 0;
  /// Transfers with smaller numbers are complete: their sums are known here.
  virtual Number complete() const = 0;

  /// From now on what is complete is kept, and not handed out.
  virtual void hold() = 0;
  /// Ends hold(). Hands out what was kept, but for the transfers `without`, whose requests are
  /// returned untouched.
  virtual std::vector<std::shared_ptr<Request>> release(std::span<const Number> without) = 0;
};

}  // namespace forebay
