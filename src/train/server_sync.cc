// Gradients through parameter servers (forebay/parameter_server.hpp).
//
//   finish()   push gradients and what stands behind them, pull parameters
//   servers    mean of the gradients -> Solver::update_part, with the rate of the push's iteration
//
// With a staleness, a server updates with what one node has pushed: its mean, with the learning
// rate times its part of the samples of an iteration, so that a step of all ranks is as long as
// without.
#include <algorithm>
#include <mutex>
#include <utility>
#include <vector>

#include "core/copy_values.hpp"
#include "train/gradient_sync.hpp"

namespace forebay {
namespace {

class ServerSync final : public GradientSync {
 public:
  ServerSync(const std::shared_ptr<Communicator>& comm, Network& network, Solver& solver,
             const GradientOptions& options, std::function<void()> interrupt)
      : comm_(comm),
        network_(network),
        solver_(solver),
        stale_(options.staleness > 0),
        told_(network.tail().size(), 0.0F),
        servers_(comm, network.parameters(), told_,
                 [this](const ShardUpdate& shard) { update(shard); },
                 {.staleness = options.staleness,
                  .proxies = options.proxies,
                  .servers = options.servers,
                  .placement = options.placement,
                  .interrupt = std::move(interrupt)}) {}

  void begin(const Stretch& stretch) override {
    {
      const std::lock_guard lock(mutex_);
      stretch_ = stretch;
      begin_clock_ = servers_.clock();
    }
    // Others may push for it from now on.
    comm_->barrier();
  }

  void ready(std::size_t) override {}
  void finish() override {
    servers_.push(network_.gradients(), network_.tail());
    statistics_.bytes += network_.gradients().size_bytes();
    servers_.pull(network_.parameters(), told_);
    // Ranks that are not in step go on with running statistics and losses of their own.
    if (!stale_ && told_.back() > 0) copy_values(told_, network_.tail());
  }
  void meet() override {
    servers_.flush(network_.parameters(), told_);
    if (stale_) average(network_.statistics());
    const std::size_t parameters = network_.parameters().size();
    for (std::size_t first = 0; first < solver_.state().size(); first += parameters) {
      const std::span<float> state = solver_.state().subspan(first, parameters);
      for (const ParameterShard& shard : servers_.shards()) {
        comm_->broadcast(std::as_writable_bytes(state.subspan(shard.first, shard.count)),
                         shard.rank);
      }
    }
  }
  bool updates_parameters() const override { return true; }
  void fail(const Error& error) override { servers_.fail(error); }
  void close() override { servers_.close(); }

  GradientStatistics statistics() const override {
    GradientStatistics statistics = statistics_;
    statistics.servers = servers_.statistics();
    return statistics;
  }
  std::string explain() const override { return servers_.explain(); }

 private:
  void average(std::span<float> statistics) {
    if (statistics.empty()) return;
    comm_->all_reduce_sum(statistics);
    for (float& value : statistics) value /= static_cast<float>(comm_->size());
  }

  /// By the progress thread of a server.
  void update(const ShardUpdate& shard) {
    copy_values(shard.added, shard.told);
    const float samples = shard.added.back();
    // What is no number goes on to the workers, which then stop.
    if (samples == 0) return;
    means_.assign(shard.gradients.begin(), shard.gradients.end());
    for (float& mean : means_) mean *= 1 / samples;
    RunTime now;
    {
      const std::lock_guard lock(mutex_);
      now = stretch_.time(stretch_.iteration + shard.clock - begin_clock_);
      if (stale_) now.rate_factor *= std::min(1.0, samples / stretch_.samples);
    }
    solver_.update_part(shard.first, shard.parameters, means_, now);
  }

  const std::shared_ptr<Communicator> comm_;
  Network& network_;
  Solver& solver_;
  const bool stale_;
  std::vector<float> told_;
  GradientStatistics statistics_;

  std::mutex mutex_;  ///< of what follows
  Stretch stretch_;
  std::uint64_t begin_clock_ = 0;

  std::vector<float> means_;  ///< of the progress thread
  ParameterServer servers_;   ///< last, so that it ends before what it works on
};

}  // namespace

std::unique_ptr<GradientSync> make_server_sync(const std::shared_ptr<Communicator>& comm,
                                               Network& network, Solver& solver,
                                               const GradientOptions& options,
                                               std::function<void()> interrupt) {
  return std::make_unique<ServerSync>(comm, network, solver, options, std::move(interrupt));
}

}  // namespace forebay
