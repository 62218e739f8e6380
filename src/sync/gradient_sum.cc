#include "sync/gradient_sum.hpp"

#include <utility>

namespace forebay {
namespace {

using std::chrono_literals::operator""ms;

class BlockingSum final : public GradientSum {
 public:
  BlockingSum(std::shared_ptr<Communicator> comm, std::span<float> all,
              const GradientSumOptions& options)
      : comm_(std::move(comm)),
        all_(all),
        scale_(options.reduction == Reduction::mean ? 1 / static_cast<float>(comm_->size()) : 1) {
    if (!options.initial.empty()) comm_->broadcast(std::as_writable_bytes(options.initial), 0);
  }

  void start(std::size_t) override { summed_ = false; }
  void end_step() override {}
  bool done(std::size_t) const override { return summed_; }
  void wait(std::size_t) override {
    if (std::exchange(summed_, true)) return;
    comm_->all_reduce_sum(all_);
    if (scale_ != 1) {
      for (float& value : all_) value *= scale_;
    }
    ++statistics_.transfers;
    statistics_.bytes += all_.size_bytes();
  }
  void fail(const Error&) override {}  // the others wait in a collective call: see set_interrupt
  void close() override {}
  SyncStatistics statistics() const override { return statistics_; }
  std::string explain() const override {
    return "blocking: one all-reduce after the backward pass";
  }

 private:
  std::shared_ptr<Communicator> comm_;
  std::span<float> all_;
  float scale_;
  bool summed_ = false;
  SyncStatistics statistics_;
};

class EngineSum final : public GradientSum {
 public:
  EngineSum(const std::shared_ptr<Communicator>& comm, std::vector<Gradient> gradients,
            const GradientSumOptions& options)
      : gradients_(std::move(gradients)),
        sums_(gradients_.size()),
        reduction_(options.reduction),
        interrupt_(options.interrupt),
        engine_(comm, options.engine) {
    const std::span<float> initial = options.initial;
    if (!initial.empty()) {
      wait_for(engine_.broadcast({.name = "parameters", .shape = {initial.size()}},
                                 std::as_writable_bytes(initial), 0));
    }
    if (options.engine.strategy.takes_graph && options.graph) {
      engine_.use_graph(options.graph->graph, options.graph->fetches);
    }
  }

  void start(std::size_t gradient) override {
    const auto& [tensor, values] = gradients_[gradient];
    sums_[gradient] = engine_.allreduce(tensor, std::as_bytes(values),
                                        std::as_writable_bytes(values), reduction_);
  }
  void end_step() override { engine_.end_step(); }
  bool done(std::size_t gradient) const override { return sums_[gradient].done(); }
  void wait(std::size_t gradient) override { wait_for(sums_[gradient]); }
  void fail(const Error& error) override { engine_.fail(error); }
  void close() override { engine_.close(); }
  SyncStatistics statistics() const override { return engine_.statistics(); }
  std::string explain() const override { return engine_.explain(); }

 private:
  // Another rank may have failed outside of this, and will not come.
  void wait_for(const SyncHandle& handle) const {
    while (!handle.wait_for(100ms)) {
      if (interrupt_) interrupt_();
    }
  }

  const std::vector<Gradient> gradients_;
  std::vector<SyncHandle> sums_;  ///< of this step
  const Reduction reduction_;
  const std::function<void()> interrupt_;
  SyncEngine engine_;  ///< last, so that it ends before what it works on
};

}  // namespace

std::unique_ptr<GradientSum> make_gradient_sum(const std::shared_ptr<Communicator>& comm,
                                               std::vector<Gradient> gradients,
                                               std::span<float> all,
                                               const GradientSumOptions& options) {
  if (!options.engine.strategy.agree) return std::make_unique<BlockingSum>(comm, all, options);
  return std::make_unique<EngineSum>(comm, std::move(gradients), options);
}

}  // namespace forebay
