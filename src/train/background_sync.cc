#include "train/background_sync.hpp"

#include <algorithm>
#include <utility>
#include <vector>

#include "train/network_graph.hpp"

namespace forebay {
namespace {

using std::chrono_literals::operator""ms;

SyncStrategy engine_strategy(GradientStrategy strategy) {
  switch (strategy) {
    case GradientStrategy::gs:
      return SyncStrategy::gs;
    case GradientStrategy::nbcs:
      return SyncStrategy::nbcs;
    case GradientStrategy::topo:
    case GradientStrategy::scp_topo:
      return SyncStrategy::topo;
    default:
      return SyncStrategy::negotiate;
  }
}

// Sums in the order of ranks: a run gives the same numbers however its transfers were timed.
SyncOptions engine_options(const GradientOptions& options) {
  SyncOptions engine;
  engine.strategy = engine_strategy(options.strategy);
  engine.cycle = options.cycle;
  engine.fusion_bytes = options.fusion_bytes;
  engine.wire = options.wire;
  engine.deterministic = true;
  engine.placement = options.placement;
  engine.trace = options.trace;
  return engine;
}

class BackgroundSync final : public GradientSync {
 public:
  BackgroundSync(const std::shared_ptr<Communicator>& comm, Network& network,
                 const GradientOptions& options, std::function<void()> interrupt)
      : comm_(comm),
        network_(network),
        strategy_(options.strategy),
        interrupt_(std::move(interrupt)),
        parts_(tensors_of(network)),
        engine_(comm, engine_options(options)) {
    broadcast(network.parameters());
    // What is rounded on the way must not be the number of samples.
    if (options.wire == WireFormat::as_is) tail_.push_back(tail_of(network));
    if (engine_strategy(strategy_) != SyncStrategy::topo || !options.graph_given) return;
    const NetworkGraph graph = graph_of(network, tail_);
    engine_.use_graph(graph.graph, graph.updates);
  }

  void ready(std::size_t part) override {
    const Part& where = network_.parts()[part];
    sums_[part] = start(parts_[part], network_.gradients().subspan(where.offset, where.size()));
    given_[part] = true;
  }

  void finish() override {
    // As the backward pass would have given them.
    for (std::size_t part = given_.size(); part-- > 0;) {
      if (!given_[part]) ready(part);
    }
    SyncHandle tail;
    if (!tail_.empty()) tail = start(tail_.front(), network_.tail());
    engine_.end_step();
    count_early();
    for (const SyncHandle& sum : sums_) wait(sum);
    if (tail_.empty()) {
      comm_->all_reduce_sum(network_.tail());
    } else {
      wait(tail);
    }
    given_.assign(given_.size(), false);
  }

  void fail(const Error& error) override { engine_.fail(error); }
  void close() override { engine_.close(); }

  GradientStrategy strategy() const override { return strategy_; }
  GradientStatistics statistics() const override {
    GradientStatistics statistics = statistics_;
    statistics.engine = engine_.statistics();
    return statistics;
  }
  std::string explain() const override { return engine_.explain(); }

 private:
  void broadcast(std::span<float> values) {
    const TensorSpec tensor{
        .name = "parameters", .type = TensorType::float32, .shape = {values.size()}};
    wait(engine_.broadcast(tensor, std::as_writable_bytes(values), 0));
  }

  SyncHandle start(const TensorSpec& tensor, std::span<float> values) {
    return engine_.allreduce(tensor, std::as_bytes(values), std::as_writable_bytes(values),
                             Reduction::sum);
  }

  // Not before all of the iteration was started: the engine takes what starts after a sum was seen
  // for something that depends on it.
  void count_early() {
    for (std::size_t part = 0; part < parts_.size(); ++part) {
      const std::uint64_t bytes = parts_[part].bytes();
      statistics_.bytes += bytes;
      if (sums_[part].done()) statistics_.early_bytes += bytes;
    }
  }

  // Another rank may have failed outside of this, and will not come.
  void wait(const SyncHandle& handle) const {
    while (!handle.wait_for(100ms)) {
      if (interrupt_) interrupt_();
    }
  }

  const std::shared_ptr<Communicator> comm_;
  Network& network_;
  const GradientStrategy strategy_;
  const std::function<void()> interrupt_;
  const std::vector<TensorSpec> parts_;
  std::vector<TensorSpec> tail_;  ///< one or, where it does not go through the engine, none
  std::vector<SyncHandle> sums_ = std::vector<SyncHandle>(parts_.size());  ///< of this iteration
  std::vector<bool> given_ = std::vector<bool>(parts_.size());  ///< which of them have begun
  GradientStatistics statistics_;
  SyncEngine engine_;  ///< last, so that it ends before what it works on
};

}  // namespace

std::unique_ptr<GradientSync> make_background_sync(const std::shared_ptr<Communicator>& comm,
                                                   Network& network, const GradientOptions& options,
                                                   std::function<void()> interrupt) {
  return std::make_unique<BackgroundSync>(comm, network, options, std::move(interrupt));
}

}  // namespace forebay
