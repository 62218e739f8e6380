#include "bench/command/emulation/emulated_training.hpp"

#include <fmt/format.h>
#include <sys/prctl.h>

#include <algorithm>
#include <cmath>
#include <deque>
#include <exception>
#include <iterator>
#include <thread>

#include "core/clock.hpp"
#include "core/placement.hpp"
#include "forebay/error.hpp"

namespace forebay::emulation {

void VirtualDevice::begin(std::int64_t now) {
  end_ = std::max(end_, now);
  idle_ = 0;
}

std::int64_t VirtualDevice::dispatch(std::int64_t now, std::chrono::nanoseconds takes) {
  if (now > end_) {
    idle_ += now - end_;
    end_ = now;
  }
  end_ += takes.count();
  ends_.push_back(end_);
  return end_;
}

bool VirtualDevice::full(std::int64_t now) {
  while (!ends_.empty() && ends_.front() <= now) ends_.pop_front();
  return ends_.size() >= queue_;
}

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

namespace {

using nets::Operation;
using nets::OperationKind;

void sleep_until(std::int64_t ns) {
  std::this_thread::sleep_until(
      std::chrono::steady_clock::time_point(std::chrono::nanoseconds(ns)));
}

double seconds(std::int64_t ns) { return static_cast<double>(ns) * 1e-9; }

/// What the scheduler's thread does.
class Scheduler {
 public:
  Scheduler(const nets::TrainingStep& step, GradientSum& sync, ImageFeed& feed,
            const TrainingOptions& options)
      : step_(step), sync_(sync), feed_(feed), options_(options), device_(options.queue) {}

  void run_step() {
    const std::int64_t begin = now_ns();
    feed_.next();
    figures_.input_wait_seconds += seconds(now_ns() - begin);
    device_.begin(now_ns());
    input_active_ = feed_.active_ns();
    started_ = false;
    bool updating = false;
    for (const Operation& operation : step_.operations) {
      if (operation.kind == OperationKind::update && !updating) {
        updating = true;
        end_backward();
      }
      schedule(operation);
    }
    sync_.end_step();
    figures_.exposed_seconds += seconds(std::max<std::int64_t>(0, last_mean_ - last_gradient_));
    sleep_until(device_.end());
  }

  TrainingFigures& figures() { return figures_; }

 private:
  /// A gradient that the device will have made.
  struct Coming {
    std::int64_t at = 0;
    std::size_t tensor = 0;
  };

  void schedule(const Operation& operation) {
    compute();
    switch (operation.kind) {
      case OperationKind::host:
      case OperationKind::allreduce:  // once its gradient is there
        break;
      case OperationKind::update:
        sync_.wait(operation.tensor);
        last_mean_ = now_ns();
        dispatch(operation);
        break;
      case OperationKind::kernel:
        dispatch(operation);
        break;
      case OperationKind::gradient:
        last_gradient_ = dispatch(operation);
        coming_.push_back({last_gradient_, operation.tensor});
        break;
    }
    start_ready();
  }

  /// The work of a framework: finding what is ready, allocating, launching.
  void compute() const {
    const std::int64_t end = now_ns() + options_.dispatch.count();
    while (now_ns() < end) {
    }
  }

  std::int64_t dispatch(const Operation& operation) {
    while (device_.full(now_ns())) {
      const std::int64_t gradient = coming_.empty() ? INT64_MAX : coming_.front().at;
      sleep_until(std::min(device_.first_end(), gradient));
      start_ready();
    }
    return device_.dispatch(now_ns(), operation.takes);
  }

  void start_ready() {
    while (!coming_.empty() && coming_.front().at <= now_ns()) {
      if (!started_) {
        started_ = true;
        figures_.susceptible_seconds += seconds(feed_.active_ns() - input_active_);
      }
      sync_.start(coming_.front().tensor);
      coming_.pop_front();
    }
  }

  void end_backward() {
    figures_.device_idle_seconds += seconds(device_.idle().count());
    while (!coming_.empty()) {
      sleep_until(coming_.front().at);
      start_ready();
    }
  }

  const nets::TrainingStep& step_;
  GradientSum& sync_;
  ImageFeed& feed_;
  const TrainingOptions& options_;
  VirtualDevice device_;
  std::deque<Coming> coming_;
  bool started_ = false;  // a gradient, in this step
  std::int64_t input_active_ = 0;
  std::int64_t last_gradient_ = 0;
  std::int64_t last_mean_ = 0;
  TrainingFigures figures_;
};

/// Steps that do not count, steps that do, and one whose sums are looked at.
TrainingFigures train(Communicator& comm, const nets::TrainingStep& step, GradientSum& sync,
                      Gradients& gradients, ImageFeed& feed, const TrainingOptions& options) {
  ::prctl(PR_SET_TIMERSLACK,
          1000);  // ns: the device's time line is finer than the default of 50 us
  gradients.fill(comm.rank());
  Scheduler scheduler(step, sync, feed, options);
  for (std::uint64_t i = 0; i < options.warmup; ++i) scheduler.run_step();
  scheduler.figures() = {};
  const ProcessUsage input_before = feed.cost();
  const SyncStatistics sync_before = sync.statistics();
  const ProcessUsage before = thread_usage();
  const std::int64_t begin = now_ns();
  for (std::uint64_t i = 0; i < options.steps; ++i) scheduler.run_step();
  TrainingFigures figures = scheduler.figures();
  figures.seconds = seconds(now_ns() - begin);
  figures.scheduler = thread_usage() - before;
  figures.sync = since(sync_before, sync.statistics());
  figures.input = feed.cost() - input_before;
  gradients.fill(comm.rank());
  scheduler.run_step();
  gradients.require_mean(comm.size());
  return figures;
}

}  // namespace

TrainingFigures run_training(const std::shared_ptr<Communicator>& comm,
                             const nets::TrainingStep& step, GradientSum& sync,
                             Gradients& gradients, const TrainingOptions& options,
                             const CorePlan& cores) {
  TrainingFigures figures;
  collectively(*comm, [&] {
    FeedOptions feed_options = options.feed;
    feed_options.placement = Placement::of(cores, Component::decode);
    ImageFeed feed(feed_options);
    std::exception_ptr error;
    HelperThread scheduler("fb-scheduler", Placement::of(cores, Component::compute),
                           [&](const std::stop_token&) {
                             try {
                               figures = train(*comm, step, sync, gradients, feed, options);
                             } catch (...) {
                               error = std::current_exception();
                             }
                           });
    scheduler.stop();
    if (error) std::rethrow_exception(error);
  });
  return figures;
}

}  // namespace forebay::emulation
