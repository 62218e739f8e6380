#include "bench/command/emulation/gradient_sync.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>

#include "forebay/error.hpp"

namespace forebay::emulation {
namespace {

class BlockingSync final : public GradientSync {
 public:
  BlockingSync(std::shared_ptr<Communicator> comm, Gradients& gradients)
      : comm_(std::move(comm)), gradients_(gradients) {}

  void start(std::size_t) override { summed_ = false; }

  void finish(std::size_t) override {
    if (summed_) return;
    summed_ = true;
    comm_->all_reduce_sum(gradients_.all());
    const float scale = 1 / static_cast<float>(comm_->size());
    for (float& value : gradients_.all()) value *= scale;
    ++statistics_.transfers;
    statistics_.bytes += gradients_.all().size_bytes();
  }

  void end_step() override {}
  SyncStatistics statistics() const override { return statistics_; }
  std::string explain() const override {
    return "blocking: one all-reduce of all gradients, in the scheduler's thread";
  }

 private:
  std::shared_ptr<Communicator> comm_;
  Gradients& gradients_;
  bool summed_ = false;
  SyncStatistics statistics_;
};

class EngineSync final : public GradientSync {
 public:
  EngineSync(const std::shared_ptr<Communicator>& comm, const nets::TrainingStep& step,
             Gradients& gradients, const SyncSetup& setup, const CorePlan& cores)
      : gradients_(gradients), handles_(step.tensors.size()) {
    for (const nets::Parameter& tensor : step.tensors) {
      specs_.push_back({.name = tensor.name, .shape = tensor.shape});
    }
    SyncOptions options = setup.engine;
    options.strategy = setup.way.strategy;
    options.placement = cores.to_text();
    engine_ = std::make_unique<SyncEngine>(comm, options);
    if (options.strategy != SyncStrategy::topo || setup.capture) return;
    const GraphFile file = nets::graph_of(step);
    engine_->use_graph(file.graph, file.fetches);
  }

  void start(std::size_t tensor) override {
    const std::span<float> values = gradients_.tensor(tensor);
    handles_[tensor] = engine_->allreduce(specs_[tensor], std::as_bytes(values),
                                          std::as_writable_bytes(values), Reduction::mean);
  }

  void finish(std::size_t tensor) override { handles_[tensor].wait(); }
  void end_step() override { engine_->end_step(); }
  SyncStatistics statistics() const override { return engine_->statistics(); }
  std::string explain() const override { return engine_->explain(); }

 private:
  Gradients& gradients_;
  std::vector<TensorSpec> specs_;
  std::vector<SyncHandle> handles_;
  std::unique_ptr<SyncEngine> engine_;
};

}  // namespace

Gradients::Gradients(const nets::TrainingStep& step) {
  std::size_t size = 0;
  for (const nets::Parameter& tensor : step.tensors) {
    begins_.push_back(size);
    size += tensor.elements();
  }
  begins_.push_back(size);
  values_.resize(size);
}

std::span<float> Gradients::tensor(std::size_t number) {
  return std::span(values_).subspan(begins_[number], begins_[number + 1] - begins_[number]);
}

void Gradients::fill(int rank) { std::ranges::fill(values_, static_cast<float>(rank + 1)); }

void Gradients::require_mean(int ranks) const {
  const float mean = static_cast<float>(ranks + 1) / 2;  // exact for as many ranks as there may be
  const float slack = mean * 1e-5F;
  const auto wrong = std::ranges::find_if(
      values_, [&](float value) { return !(std::abs(value - mean) <= slack); });
  if (wrong == values_.end()) return;
  throw Error(
      ErrorKind::corrupt,
      fmt::format("gradient number {} is {} instead of {}", wrong - values_.begin(), *wrong, mean),
      "tell the maintainers: the sums of this strategy are wrong");
}

SyncWay SyncWay::parse(std::string_view text) {
  SyncWay way{.name = std::string(text)};
  if (text == "scp") {
    way.placed = true;
    return way;
  }
  constexpr std::string_view kPlaced = "scp-";
  if (text.starts_with(kPlaced)) {
    way.placed = true;
    text.remove_prefix(kPlaced.size());
  }
  way.blocking = text == "blocking";
  if (way.blocking) return way;
  constexpr SyncStrategy kAll[] = {SyncStrategy::negotiate, SyncStrategy::gs, SyncStrategy::nbcs,
                                   SyncStrategy::topo};
  const auto* found = std::ranges::find(kAll, text, [](SyncStrategy s) { return to_string(s); });
  if (found == std::end(kAll)) {
    throw Error(ErrorKind::usage, fmt::format("'{}' is no way to sum gradients", way.name),
                "choose blocking, negotiate, gs, nbcs or topo, each with scp- before it for cores "
                "of its own; scp is scp-negotiate");
  }
  way.strategy = *found;
  return way;
}

SyncStatistics since(const SyncStatistics& earlier, SyncStatistics later) {
  using Count = std::uint64_t SyncStatistics::*;
  using Seconds = double SyncStatistics::*;
  constexpr Count kCounts[] = {&SyncStatistics::tensors,
                               &SyncStatistics::transfers,
                               &SyncStatistics::bytes,
                               &SyncStatistics::wire_bytes,
                               &SyncStatistics::cycles,
                               &SyncStatistics::empty_cycles,
                               &SyncStatistics::negotiations,
                               &SyncStatistics::cache_hits,
                               &SyncStatistics::cache_misses,
                               &SyncStatistics::plans,
                               &SyncStatistics::fallbacks,
                               &SyncStatistics::stalls,
                               &SyncStatistics::thread_voluntary_switches,
                               &SyncStatistics::thread_involuntary_switches};
  constexpr Seconds kSeconds[] = {
      &SyncStatistics::wait_seconds,        &SyncStatistics::copy_seconds,
      &SyncStatistics::transfer_seconds,    &SyncStatistics::skew_seconds,
      &SyncStatistics::thread_user_seconds, &SyncStatistics::thread_system_seconds};
  for (const Count count : kCounts) later.*count -= earlier.*count;
  for (const Seconds part : kSeconds) later.*part -= earlier.*part;
  for (std::size_t i = 0; i < std::size(later.oversleep); ++i) {
    later.oversleep[i] -= earlier.oversleep[i];
  }
  return later;
}

std::unique_ptr<GradientSync> make_gradient_sync(const std::shared_ptr<Communicator>& comm,
                                                 const nets::TrainingStep& step,
                                                 Gradients& gradients, const SyncSetup& setup,
                                                 const CorePlan& cores) {
  if (setup.way.blocking) return std::make_unique<BlockingSync>(comm, gradients);
  return std::make_unique<EngineSync>(comm, step, gradients, setup, cores);
}

}  // namespace forebay::emulation
