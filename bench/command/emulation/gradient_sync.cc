#include "bench/command/emulation/emulated_training.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>

#include "forebay/error.hpp"

namespace forebay::emulation {

std::vector<SyncWay> emulated_ways() {
  std::vector<SyncWay> ways = sync_ways();
  std::erase_if(ways, &SyncWay::has_servers);
  return ways;
}

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

SyncStatistics since(const SyncStatistics& earlier, SyncStatistics later) {
  const auto subtract = [](std::string_view name, auto& figure, const auto& before) {
    if constexpr (std::is_array_v<std::remove_reference_t<decltype(figure)>>) {
      for (std::size_t i = 0; i < std::size(figure); ++i) figure[i] -= before[i];
    } else if (name != "largest_transfer") {
      figure -= before;
    }
  };
  for_each_figure(subtract, later, earlier);
  return later;
}

std::unique_ptr<GradientSum> make_gradient_sum(const std::shared_ptr<Communicator>& comm,
                                               const nets::TrainingStep& step, Gradients& gradients,
                                               const SyncSetup& setup, const CorePlan& cores) {
  GradientSumOptions options{.engine = setup.engine, .reduction = Reduction::mean};
  options.engine.strategy = setup.way;
  options.engine.strategy.own_cores = false;  // the whole process has them by now
  options.engine.placement = cores.to_text();
  if (!setup.capture) options.graph = nets::graph_of(step);
  std::vector<Gradient> tensors;
  for (std::size_t i = 0; i < step.tensors.size(); ++i) {
    const nets::Parameter& tensor = step.tensors[i];
    tensors.push_back({{.name = tensor.name, .shape = tensor.shape}, gradients.tensor(i)});
  }
  return forebay::make_gradient_sum(comm, std::move(tensors), gradients.all(), options);
}

}  // namespace forebay::emulation
