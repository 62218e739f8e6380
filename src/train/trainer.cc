#include "train/trainer.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "comm/values.hpp"
#include "core/clock.hpp"
#include "forebay/log.hpp"
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

// What a training does between iterations: tests, checkpoints, and larger batches.

void Trainer::finish_epoch() {
  const auto samples = static_cast<double>(std::max<std::uint64_t>(1, progress_.loss_count));
  EpochRecord record{.epoch = training_set_->loader().epochs_done(),
                     .iteration = progress_.iteration,
                     .loss = progress_.loss_sum / samples,
                     .test = {}};
  if (test_set_) {
    const PhaseTimer time = timer(Phase::test);
    record.test = last_test_ = test();
  }
  progress_.epoch = record.epoch;
  progress_.loss_sum = 0;
  progress_.loss_count = 0;
  collectively(*comm_, [&] {
    if (!leads()) return;
    log_->write(to_json(record));
    if (listener_) listener_(record);
  });
  grow();
}

void Trainer::grow() {
  if (!growing()) return;
  const double accuracy = last_test_->accuracy.value();
  if (!take_test(progress_.growth, options_.growth, accuracy, progress_.iteration)) return;
  collectively(*comm_, [&] { log_growth(); });
}

/// The first batch of an iteration says how many it takes.
void Trainer::grow_by_pass() {
  if (!growing_by_pass()) return;
  const std::uint64_t pass = training_set_->pass().number;
  if (take_pass(progress_.growth, options_.growth, pass, progress_.iteration)) log_growth();
}

void Trainer::log_growth() {
  if (!leads()) return;
  const GrowthRecord record{.iteration = progress_.iteration,
                            .batch = options_.loader.batch * batches_of_iteration()};
  log_->write(to_json(record));
  const LogLevel level = growing_by_pass() ? LogLevel::debug : LogLevel::info;
  log_message(level,
              fmt::format("iteration {}: the batch is {} now", record.iteration, record.batch));
}

/// Of the batches of this iteration; where passes end, there are fewer.
double Trainer::part_taken() const {
  if (!growing_by_pass()) return 1;
  return static_cast<double>(batches_) / static_cast<double>(batches_of_iteration());
}

// The test set is circular too, so any N positions in a row hold each of its samples once: the
// loader just goes on from where the last test ended.
TestScore Trainer::test() {
  const StridedOrder& order = test_set_->loader().order();
  const std::uint64_t entries = order.entries();
  const std::uint64_t first = test_set_->next_iteration();
  const std::uint64_t end = order.run(0, first).first + entries;
  Score mine;
  collectively(*comm_, [&] {
    for (std::uint64_t i = 0; i < (entries + order.batch() - 1) / order.batch(); ++i) {
      test_set_->next();
      test_set_->read(options_.classes);
      const Score score = network_->evaluate(test_set_->batch_before(end));
      mine.loss += score.loss;
      mine.correct += score.correct;
      test_set_->release();
    }
  });
  Score all;
  // In the order of ranks, and in double precision: the same result in every run.
  for (const Score& score : gather_all(*comm_, mine)) {
    all.loss += score.loss;
    all.correct += score.correct;
  }
  const auto count = static_cast<double>(entries);
  TestScore score{.accuracy = {}, .loss = all.loss / count, .samples = entries};
  if (task_ == Task::classify) score.accuracy = static_cast<double>(all.correct) / count;
  return score;
}

void Trainer::save() {
  if (options_.checkpoint.empty()) return;
  const TrainingState arrays = state();
  progress_.net = options_.net;
  progress_.input = training_set_->shape();
  progress_.outputs = outputs();
  progress_.solver = to_string(options_.solver.kind);
  progress_.parameters = arrays.parameters.size();
  progress_.statistics = arrays.statistics.size();
  progress_.solver_state = arrays.solver.size();
  progress_.seed = options_.seed;
  progress_.train_state = training_set_->loader().state();
  progress_.test_state = test_set_ ? test_set_->loader().state() : "";
  collectively(*comm_, [&] {
    if (!leads()) return;
    write_checkpoint(options_.checkpoint, progress_, arrays);
    const std::uint64_t keep = options_.keep_checkpoints;
    if (keep > 0) thin_checkpoints(options_.checkpoint, progress_.iteration, keep);
  });
}

}  // namespace forebay
