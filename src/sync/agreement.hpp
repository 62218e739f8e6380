// How ranks come to start the same transfers in the same order: the strategy of an engine.
//
//   any thread:       submit(request)            into a queue, or a slot of a plan
//   progress thread:  step(), step(), ...        talks to other ranks; starts transfers on the line
//
// An implementation is a state machine: step() does what can be done now and never waits.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "comm/nonblocking.hpp"
#include "forebay/communicator.hpp"
#include "forebay/graph.hpp"
#include "sync/request.hpp"
#include "sync/transfer_line.hpp"

namespace forebay {

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
