#include "train/trainer.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "comm/trace_of_ranks.hpp"
#include "comm/values.hpp"
#include "core/clock.hpp"
#include "forebay/error.hpp"
#include "train/net_catalog.hpp"

namespace forebay {

Trainer::Trainer(const std::shared_ptr<Communicator>& comm, TrainOptions options,
                 const NetworkFactory& factory, EpochListener listener)
    : comm_(comm->split(0, comm->rank())),
      options_(std::move(options)),
      task_(find_net(options_.net).task),
      listener_(std::move(listener)) {
  together([&] { open(factory); });
}

TrainReport Trainer::run() {
  TrainReport result;
  together([&] {
    train();
    result = report();
    write_timeline();
  });
  return result;
}

// Ends all ranks when one fails: the loaders carry the error to where the others wait, and give
// all of them the same one; those that wait for gradients get it from there.
void Trainer::together(const std::function<void()>& steps) {
  const auto fail = [this](const Error& error) {
    if (sync_) sync_->fail(error.at_rank(comm_->rank()));
    for (auto* reader : {&training_set_, &test_set_}) {
      if (reader->has_value()) (*reader)->loader().fail(error.at_rank(comm_->rank()));
    }
    if (training_set_) training_set_->loader().check();
  };
  try {
    steps();
  } catch (const Error& error) {
    fail(error);
    throw;
  } catch (const std::exception& failure) {
    const Error error(ErrorKind::unsupported, fmt::format("training failed: {}", failure.what()));
    fail(error);
    throw error;
  }
}

TrainingState Trainer::state() {
  return {.parameters = network_->parameters(),
          .statistics = network_->statistics(),
          .solver = solver_->state()};
}

RunTime Trainer::now() const {
  return {.iteration = progress_.iteration,
          .epoch = progress_.epoch,
          .rate_factor =
              rate_factor(progress_.growth, options_.growth, progress_.iteration, part_taken())};
}

std::uint64_t Trainer::epochs_wanted() const {
  return options_.loader.epochs > 0 ? options_.loader.epochs : UINT64_MAX;
}

bool Trainer::done() const {
  const std::uint64_t limit = options_.loader.iterations;
  return progress_.epoch >= epochs_wanted() || (limit > 0 && progress_.iteration >= limit);
}

void Trainer::train() {
  training_begin_ = now_seconds();
  begin_stretch();
  while (!done() && step()) {
    const bool epoch_ends = training_set_->loader().epochs_done() > progress_.epoch;
    const std::uint64_t every = options_.checkpoint_every;
    if (!epoch_ends && !done() && (every == 0 || progress_.iteration % every != 0)) continue;
    sync_->meet();
    if (epoch_ends) finish_epoch();
    save();
    begin_stretch();
  }
  breakdown_.close(now_seconds() - training_begin_);
  sync_->close();
}

/// For those who update parameters themselves, beside this thread: they get copies.
void Trainer::begin_stretch() {
  const auto time = [epoch = progress_.epoch, growth = progress_.growth,
                     options = options_.growth](std::uint64_t iteration) {
    return RunTime{.iteration = iteration,
                   .epoch = epoch,
                   .rate_factor = rate_factor(growth, options, iteration)};
  };
  sync_->begin({.iteration = progress_.iteration,
                .samples = static_cast<double>(options_.loader.batch * batches_of_iteration()),
                .time = time});
}

TrainReport Trainer::report() {
  const LoaderStatistics mine = training_set_->loader().statistics();
  // The loader knows which part of the waiting was for slower ranks.
  breakdown_[Phase::read] = std::max(0.0, breakdown_[Phase::read] - mine.skew_seconds);
  breakdown_[Phase::skew] += mine.skew_seconds;
  return {.iterations = progress_.iteration,
          .epochs = progress_.epoch,
          .loss = last_loss_,
          .test = last_test_,
          .ranks = gather_all(*comm_, breakdown_),
          .sync = gather_all(*comm_, sync_->statistics()),
          .sync_strategy = options_.gradients.strategy,
          .sync_explanation = sync_->explain(),
          .loader = combine(gather_all(*comm_, mine)),
          .explanation = training_set_->loader().explain()};
}

void Trainer::write_timeline() {
  if (trace_) write_trace_of_ranks(*comm_, *trace_, options_.trace);
}

}  // namespace forebay
