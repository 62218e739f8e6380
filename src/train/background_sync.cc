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

std::uint64_t choose_fusion(const SyncOptions& engine, std::uint64_t gradient_bytes) {
  constexpr std::uint64_t kLeast = 256 << 10;
  if (engine.strategy != SyncStrategy::topo) return engine.fusion_bytes;
  return std::clamp(gradient_bytes / 8, kLeast, engine.fusion_bytes);
}

// Sums in the order of ranks: a run gives the same numbers however its transfers were timed.
SyncOptions engine_options(const GradientOptions& options, std::uint64_t gradient_bytes) {
  SyncOptions engine;
  engine.strategy = engine_strategy(options.strategy);
  engine.cycle = options.cycle;
  engine.fusion_bytes = options.fusion_bytes.value_or(choose_fusion(engine, gradient_bytes));
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
      : network_(network),
        strategy_(options.strategy),
        interrupt_(std::move(interrupt)),
        tensors_(tensors_of(network)),
        sums_(tensors_.size()),
        engine_(comm, engine_options(options, network.gradients().size_bytes())) {
    if (engine_strategy(strategy_) != SyncStrategy::topo || !options.graph_given) return;
    const NetworkGraph graph = graph_of(network);
    engine_.use_graph(graph.graph, graph.updates);
  }

  void broadcast(std::span<float> values, int root) override {
    const TensorSpec tensor{.name = "parameters", .shape = {values.size()}};
    wait(engine_.broadcast(tensor, std::as_writable_bytes(values), root));
  }

  void ready(std::size_t part) override {
    const Part& where = network_.parts()[part];
    start(part, network_.gradients().subspan(where.offset, where.size()));
    given_[part] = true;
  }

  void finish() override {
    // As the backward pass would have given them.
    for (std::size_t part = given_.size(); part-- > 0;) {
      if (!given_[part]) ready(part);
    }
    start(given_.size(), network_.tail());
    engine_.end_step();
    count_early();
    for (const SyncHandle& sum : sums_) wait(sum);
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
  void start(std::size_t tensor, std::span<float> values) {
    sums_[tensor] = engine_.allreduce(tensors_[tensor], std::as_bytes(values),
                                      std::as_writable_bytes(values), Reduction::sum);
  }

  // Not before all of the iteration was started: the engine takes what starts after a sum was seen
  // for something that depends on it.
  void count_early() {
    for (std::size_t part = 0; part < given_.size(); ++part) {
      const std::uint64_t bytes = tensors_[part].bytes();
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

  Network& network_;
  const GradientStrategy strategy_;
  const std::function<void()> interrupt_;
  const std::vector<TensorSpec> tensors_;  ///< parts, tail
  std::vector<SyncHandle> sums_;           ///< of this iteration
  std::vector<bool> given_ = std::vector<bool>(tensors_.size() - 1);
  GradientStatistics statistics_;
  SyncEngine engine_;  ///< last, so that it ends before the memory that it sums
};

}  // namespace

std::unique_ptr<GradientSync> make_background_sync(const std::shared_ptr<Communicator>& comm,
                                                   Network& network, const GradientOptions& options,
                                                   std::function<void()> interrupt) {
  return std::make_unique<BackgroundSync>(comm, network, options, std::move(interrupt));
}

}  // namespace forebay
