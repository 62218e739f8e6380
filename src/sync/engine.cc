// What is behind SyncEngine.
//
//   callers:          start(request) -> names -> agreement.submit   (wakes the thread, if need be)
//   progress thread:  poll(): failure of others -> agreement.step() -> line.step()
//
// Whatever fails, fails in poll(), or is found there (failure_board.hpp): then all handles fail,
// and nothing is polled any more. So no memory of a caller is touched once its handle is done.
#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <exception>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>

#include "comm/failure_board.hpp"
#include "comm/progress_thread.hpp"
#include "core/clock.hpp"
#include "core/log.hpp"
#include "core/non_copyable.hpp"
#include "forebay/placement.hpp"
#include "forebay/sync.hpp"
#include "forebay/sync_agreement.hpp"
#include "sync/accelerator.hpp"
#include "sync/buffered_line.hpp"
#include "sync/request.hpp"
#include "sync/summation.hpp"

namespace forebay {
namespace {

using std::chrono::milliseconds;

/// The longest that the thread sleeps: failures of other ranks are to be seen.
constexpr milliseconds kLongestRest{250};
/// How long close() waits for what was started, and for the other ranks.
constexpr std::chrono::minutes kClosePatience{10};
constexpr std::string_view kJoinName = "forebay:join";
constexpr std::string_view kCloseName = "forebay:close";

/// Longer tensors than a buffer move in pieces, which should not be too small.
SummationOptions summation_options(const SyncOptions& options) {
  constexpr std::uint64_t kSmallestBuffer = std::uint64_t{64} << 10;
  constexpr std::uint64_t kLargestBuffer = std::uint64_t{1} << 30;
  const std::uint64_t fusion = options.fusion_bytes.value_or(kUsualFusion);
  const std::uint64_t bytes = fusion == 0 ? kUsualFusion : fusion;
  return {.algorithm = options.algorithm,
          .wire = options.wire,
          .deterministic = options.deterministic,
          .largest = std::clamp(bytes, kSmallestBuffer, kLargestBuffer),
          .lanes = options.strategy.lanes,
          .device = options.device};
}

void check_name(const std::string& name) {
  constexpr std::size_t kLongestName = 4096;
  if (!name.empty() && name.size() <= kLongestName && !name.starts_with("forebay:")) return;
  throw Error(ErrorKind::usage,
              fmt::format("'{}' is no name for a tensor", printable_key(std::as_const(name))),
              "names have 1 to 4096 characters and do not begin with 'forebay:'");
}

void check_bytes(const TensorSpec& tensor, std::size_t given, std::string_view what) {
  const std::uint64_t bytes = tensor.bytes();
  if (given == bytes) return;
  throw Error(ErrorKind::usage,
              fmt::format("tensor '{}': {} has {} bytes, {} {} has {}", tensor.name, what, given,
                          to_string(tensor.type), describe_shape(tensor.shape), bytes),
              "give memory of the tensor's own size");
}

Request sum_request(const TensorSpec& tensor, std::span<const std::byte> in,
                    std::span<std::byte> out, Reduction reduction) {
  check_name(tensor.name);
  check_bytes(tensor, in.size(), "the input");
  check_bytes(tensor, out.size(), "the output");
  return {.operation = SyncOperation::allreduce,
          .tensor = tensor,
          .reduction = reduction,
          .in = in,
          .out = out};
}

}  // namespace

class SyncEngine::Implementation : private NonCopyable {
 public:
  /// Collective.
  Implementation(const std::shared_ptr<Communicator>& comm, SyncOptions options)
      : options_(std::move(options)),
        names_(std::make_shared<NamesOnTheWay>()),
        joined_(std::make_shared<std::atomic<bool>>(false)) {
    check_options(*comm, options_);
    comm_ = comm->split(0, comm->rank());
    failure_.emplace(comm_, comm_->split_by_node());
    line_ = std::make_unique<BufferedLine>(*comm_, summation_options(options_), options_.trace,
                                           counting_);
    agreement_ = options_.strategy.agree({.options = options_,
                                          .comm = comm_,
                                          .line = *line_,
                                          .statistics = counting_,
                                          .wake = [this] { registration_.wake(); }});
    const bool apart = options_.strategy.own_cores && options_.placement == "shared";
    cores_ = plan_cores(*comm_, apart ? "partition" : options_.placement);
    thread_ = progress_thread(Placement::of(cores_, Component::progress));
    registration_ = thread_->add([this] { return poll(); });
  }

  ~Implementation() {
    try {
      if (!closed_ && failure_->unwinding()) {
        fail(Error(ErrorKind::communication, "a rank has ended its synchronization by an error",
                   "look for the error of that rank"));
      }
      close();
    } catch (const std::exception& error) {
      log(LogLevel::debug, "synchronization ended: {}", error.what());
    }
    registration_ = {};
  }

  SyncHandle start(Request request) {
    if (closed_) {
      throw Error(ErrorKind::usage,
                  fmt::format("tensor '{}' is started after close()", request.tensor.name),
                  "close the engine last");
    }
    if (*joined_) {
      throw Error(ErrorKind::usage,
                  fmt::format("tensor '{}' is started after join()", request.tensor.name),
                  "wait for the handle of join() first");
    }
    request.state = std::make_shared<SyncHandle::State>();
    request.state->before_end = std::exchange(request.end, {});
    const SyncHandle handle(request.state);
    submit(std::move(request));
    return handle;
  }

  /// After what `stream` has been given.
  SyncHandle start_on_device(Request request, void* stream) {
    Accelerator* const device = line_->on_device();
    if (device == nullptr) {
      throw Error(ErrorKind::usage,
                  fmt::format("tensor '{}' is in the memory of a device, but {}",
                              request.tensor.name, line_->explain()),
                  "make the engine with the algorithm nccl, or give memory of the host");
    }
    request.ready = device->moment_of(stream);
    return start(std::move(request));
  }

  SyncHandle join() {
    Request request{.operation = SyncOperation::join,
                    .tensor = {.name = std::string(kJoinName)},
                    .state = std::make_shared<SyncHandle::State>()};
    const SyncHandle handle(request.state);
    if (joined_->exchange(true)) {
      throw Error(ErrorKind::usage, "join() while a join() is on its way", "wait for its handle");
    }
    request.state->on_end = [joined = joined_] { *joined = false; };
    submit(std::move(request));
    return handle;
  }

  void end_step() {
    if (agreement_->end_step()) registration_.wake();
  }
  void use_graph(const Graph& graph, std::span<const std::string> fetches) {
    check();
    if (!names_->wait_until_none(kClosePatience)) {
      throw Error(ErrorKind::communication,
                  fmt::format("use_graph: {} tensors are still on their way after 10 minutes",
                              names_->count()),
                  "start the same tensors on all ranks");
    }
    agreement_->use_graph(graph, fetches);
  }

  void fail(const Error& error) {
    failure_->fail(error);
    registration_.wake();
  }

  void check() const { names_->check(); }
  SyncStatistics statistics() const {
    SyncStatistics statistics;
    {
      const std::lock_guard lock(statistics_mutex_);
      statistics = published_;
    }
    const ProcessUsage usage = thread_->usage();
    statistics.thread_user_seconds = usage.user_seconds;
    statistics.thread_system_seconds = usage.system_seconds;
    statistics.thread_voluntary_switches = usage.voluntary_switches;
    statistics.thread_involuntary_switches = usage.involuntary_switches;
    return statistics;
  }

  std::string explain() const {
    return fmt::format("{}: {}; {}; placement: {}", options_.strategy.name, agreement_->explain(),
                       line_->explain(), cores_.explain());
  }

  void close() {
    if (closed_.exchange(true)) return;
    try {
      check();
      close_together();
    } catch (...) {
      registration_ = {};
      throw;
    }
    registration_ = {};
    // Whoever is done first still has to answer for what the others wait for.
    comm_->barrier();
  }

 private:
  Agreement::Rest poll() {
    if (ended_) return Agreement::kAnyRest;
    Agreement::Rest rest{};
    const auto failure = failure_->turn("synchronization failed", [&] { rest = move_on(); });
    if (failure) end_all(*failure);
    publish();
    return ended_ ? Agreement::kAnyRest : std::min<Agreement::Rest>(rest, kLongestRest);
  }

  Agreement::Rest move_on() {
    const auto complete = line_->complete();
    // One after the other: what the agreement starts begins to move in the same turn.
    const auto rest_of_agreement = agreement_->step();
    const auto rest = std::min(rest_of_agreement, line_->step());
    ended_ = agreement_->closed();
    // What has come may be what the agreement waits for.
    return line_->complete() == complete ? rest : Agreement::Rest::zero();
  }

  void end_all(const Error& error) {
    ended_ = true;
    line_->give_up();
    names_->fail_all(error);
    agreement_->fail(error);
  }

  void publish() {
    const std::lock_guard lock(statistics_mutex_);
    published_ = counting_;
  }

  void submit(Request request) {
    if (!names_->add(request.tensor.name, request.state)) return;
    request.submitted_ns = now_ns();
    if (agreement_->submit(std::make_shared<Request>(std::move(request)))) registration_.wake();
  }

  void close_together() {
    if (!names_->wait_until_none(kClosePatience)) {
      throw Error(
          ErrorKind::communication,
          fmt::format("{} tensors are still on their way after 10 minutes", names_->count()),
          "start the same tensors on all ranks");
    }
    Request request{.operation = SyncOperation::close,
                    .tensor = {.name = std::string(kCloseName)},
                    .state = std::make_shared<SyncHandle::State>()};
    const SyncHandle handle(request.state);
    submit(std::move(request));
    if (handle.wait_for(kClosePatience)) return;
    throw Error(ErrorKind::communication, "another rank has not closed its synchronization",
                "call close() on all ranks");
  }

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

// The public side: arguments are checked here, in the caller's thread.

SyncEngine::SyncEngine(const std::shared_ptr<Communicator>& comm, SyncOptions options)
    : implementation_(std::make_unique<Implementation>(comm, std::move(options))),
      ranks_(comm->size()) {}

SyncEngine::~SyncEngine() = default;

SyncHandle SyncEngine::allreduce(const TensorSpec& tensor, std::span<const std::byte> in,
                                 std::span<std::byte> out, Reduction reduction, SyncEnd end) {
  Request request = sum_request(tensor, in, out, reduction);
  request.end = std::move(end);
  return implementation_->start(std::move(request));
}

SyncHandle SyncEngine::allreduce(const TensorSpec& tensor, std::span<const std::byte> in,
                                 std::span<std::byte> out, Reduction reduction, OnDevice device) {
  return implementation_->start_on_device(sum_request(tensor, in, out, reduction), device.stream);
}

SyncHandle SyncEngine::broadcast(const TensorSpec& tensor, std::span<std::byte> data, int root,
                                 SyncEnd end) {
  check_name(tensor.name);
  check_bytes(tensor, data.size(), "the memory");
  if (root < 0 || root >= ranks_) {
    throw Error(ErrorKind::usage,
                fmt::format("tensor '{}': there is no rank {}", tensor.name, root),
                fmt::format("choose a root from 0 to {}", ranks_ - 1));
  }
  return implementation_->start({.operation = SyncOperation::broadcast,
                                 .tensor = tensor,
                                 .root = root,
                                 .in = data,
                                 .out = data,
                                 .end = std::move(end)});
}

SyncHandle SyncEngine::allgather(const TensorSpec& tensor, std::span<const std::byte> in) {
  check_name(tensor.name);
  check_bytes(tensor, in.size(), "the input");
  if (tensor.shape.empty()) {
    throw Error(ErrorKind::usage, fmt::format("tensor '{}': one number has no rows", tensor.name),
                "gather it with the shape [1]");
  }
  return implementation_->start(
      {.operation = SyncOperation::allgather, .tensor = tensor, .in = in});
}

SyncHandle SyncEngine::barrier(const std::string& name) {
  check_name(name);
  return implementation_->start({.operation = SyncOperation::barrier, .tensor = {.name = name}});
}

SyncHandle SyncEngine::join() { return implementation_->join(); }

void SyncEngine::end_step() { implementation_->end_step(); }

void SyncEngine::use_graph(const Graph& graph, std::span<const std::string> fetches) {
  implementation_->use_graph(graph, fetches);
}

void SyncEngine::fail(const Error& error) { implementation_->fail(error); }

void SyncEngine::check() const { implementation_->check(); }

SyncStatistics SyncEngine::statistics() const { return implementation_->statistics(); }

std::string SyncEngine::explain() const { return implementation_->explain(); }

void SyncEngine::close() { implementation_->close(); }

}  // namespace forebay
