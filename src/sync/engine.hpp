// What is behind SyncEngine.
//
//   callers:          start(request) -> names -> agreement.submit   (wakes the thread, if need be)
//   progress thread:  poll(): failure of others -> agreement.step() -> line.step()
//
// Whatever fails, fails in poll(), or is found there (failure_board.hpp): then all handles fail,
// and nothing is polled any more. So no memory of a caller is touched once its handle is done.
#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "comm/failure_board.hpp"
#include "comm/progress_thread.hpp"
#include "forebay/placement.hpp"
#include "forebay/sync.hpp"
#include "forebay/sync_agreement.hpp"
#include "sync/buffered_line.hpp"
#include "sync/request.hpp"

namespace forebay {

/// Throws usage, on all ranks, for what makes no sense or differs between ranks. Collective.
void check_options(Communicator& comm, const SyncOptions& options);

class SyncEngine::Implementation {
 public:
  /// Collective.
  Implementation(const std::shared_ptr<Communicator>& comm, SyncOptions options);
  ~Implementation();
  Implementation(const Implementation&) = delete;
  Implementation& operator=(const Implementation&) = delete;

  SyncHandle start(Request request);
  /// After what `stream` has been given.
  SyncHandle start_on_device(Request request, void* stream);
  SyncHandle join();
  void end_step();
  void use_graph(const Graph& graph, std::span<const std::string> fetches);
  void fail(const Error& error);
  void check() const { names_->check(); }
  SyncStatistics statistics() const;
  std::string explain() const;
  void close();

 private:
  Agreement::Rest poll();
  Agreement::Rest move_on();
  void end_all(const Error& error);
  void publish();
  void submit(Request request);
  void close_together();

  const SyncOptions options_;
  CorePlan cores_;
  std::shared_ptr<Communicator> comm_;
  std::optional<CommonFailure> failure_;
  std::shared_ptr<NamesOnTheWay> names_;
  std::shared_ptr<std::atomic<bool>> joined_;
  std::atomic<bool> closed_ = false;

  // Of the progress thread.
  SyncStatistics counting_;
  bool ended_ = false;

  mutable std::mutex statistics_mutex_;
  SyncStatistics published_;

  std::unique_ptr<BufferedLine> line_;
  std::unique_ptr<Agreement> agreement_;
  std::shared_ptr<ProgressThread> thread_;
  ProgressThread::Registration registration_;  ///< last, so that it ends first
};

}  // namespace forebay
