// How to add a way to synchronize: a class that says which tensors are summed when, and a row of
// the table of forebay/sync.hpp that makes it. Everything that lets people choose knows it from
// then on.
//
//   any thread:       submit(request)            into a queue, or a slot of a plan
//   progress thread:  step(), step(), ...        talks to other ranks; starts transfers on the line
//
// What ranks have to agree on is the order in which they start transfers on the line, nothing else:
//
//   start(A) start(B) start(C)
//   A: copy in -> sum over ranks -> copy out -> handles done
//   B:            copy in -> sum ...             several on their way, handed out in order
//
// A transfer is one or more allreduces of one type and reduction, side by side in one buffer, or
// one operation of another kind. A part without a request is one that this rank does not have: it
// adds neutral elements (zeros; for min and max the largest and the smallest number), and its
// result goes nowhere. Transfers longer than a buffer move in pieces. Joins and closes are no
// transfers: an agreement finishes them itself, when all ranks have asked for them.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "forebay/communicator.hpp"
#include "forebay/error.hpp"
#include "forebay/graph.hpp"
#include "forebay/sync.hpp"

namespace forebay {

/// `join` and `close` have no tensor; they are done when all ranks have asked for them.
enum class SyncOperation : std::uint8_t { allreduce, broadcast, allgather, barrier, join, close };
std::string_view to_string(SyncOperation operation);

/// When work on a device is done: internal.
class DeviceMoment;

/// One operation on one tensor. Written by its caller before it is submitted and only read from
/// then on; what changes is in its handle's state. Memory of `in` and `out` is the caller's, and
/// stays as it is until the handle is done: `out` is written at hand-out only, so that a transfer
/// can be repeated.
struct Request {
  SyncOperation operation = SyncOperation::allreduce;
  TensorSpec tensor = {};
  Reduction reduction = Reduction::sum;  ///< of an allreduce
  int root = 0;                          ///< of a broadcast
  std::span<const std::byte> in = {};
  std::span<std::byte> out = {};
  SyncEnd end = {};  ///< of the caller's; its state has it once it is started
  std::shared_ptr<SyncHandle::State> state = nullptr;
  std::int64_t submitted_ns = 0;  ///< steady clock
  /// Of an allreduce in the memory of a device: when `in` is there. Null: in the host's.
  std::shared_ptr<const DeviceMoment> ready = nullptr;

  bool on_device() const { return ready != nullptr; }
  // End it, for those that are on no line. The first of them counts. Thread-safe.
  void finish() const;
  void fail(const Error& error) const;
};

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

/// What an agreement works with; outlives it.
struct AgreementContext {
  const SyncOptions& options;
  /// For an agreement's own messages and, while it is made, collective calls.
  std::shared_ptr<Communicator> comm;
  TransferLine& line;
  SyncStatistics& statistics;  ///< of the progress thread
  /// Any thread: step() is called soon.
  std::function<void()> wake = {};
};

class Agreement {
 public:
  /// When step() wants to be called again at the latest: 0 is at once, kAnyRest not before it is
  /// woken.
  using Rest = std::chrono::microseconds;
  static constexpr Rest kAnyRest = Rest::max();

  virtual ~Agreement() = default;
  Agreement() = default;
  Agreement(const Agreement&) = delete;
  Agreement& operator=(const Agreement&) = delete;

  /// Any thread; never blocks. The name is not on its way already. Tells whether the progress
  /// thread has to be woken for it.
  virtual bool submit(std::shared_ptr<Request> request) = 0;
  /// Any thread: see SyncEngine::end_step(). Tells whether to wake the progress thread.
  virtual bool end_step() { return false; }
  /// See SyncEngine::use_graph(); called by one caller's thread on all ranks, when nothing is on
  /// its way on this rank.
  virtual void use_graph(const Graph& /*graph*/, std::span<const std::string> /*fetches*/) {}

  /// Progress thread, before or after line.step(). Throws communication, and whatever should end
  /// the engine on all ranks.
  virtual Rest step() = 0;
  /// Progress thread: all ranks have closed; step() is not called any more.
  virtual bool closed() const = 0;
  /// Progress thread: fails all requests that are not on the line, and those to come.
  virtual void fail(const Error& error) = 0;
  /// One half sentence for explain().
  virtual std::string explain() const = 0;
};

}  // namespace forebay
