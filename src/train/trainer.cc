#include "train/trainer.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <utility>

#include "comm/trace_of_ranks.hpp"
#include "comm/values.hpp"
#include "core/clock.hpp"
#include "core/mix.hpp"
#include "forebay/error.hpp"
#include "forebay/log.hpp"
#include "forebay/trace.hpp"
#include "train/net_catalog.hpp"

namespace forebay {
namespace {

/// A seed that depends on all three numbers.
std::uint64_t seed_of(std::uint64_t seed, std::uint64_t iteration, std::uint64_t rank) {
  return mix(mix(seed + iteration + kGolden) + rank + kGolden);
}

void multiply(std::span<float> values, float by) {
  for (float& value : values) value *= by;
}

}  // namespace

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

void Trainer::require_reuse() const {
  if (!growing_by_pass()) return;
  if (options_.loader.reuse == 1) {
    throw Error(ErrorKind::usage,
                "batches grow with each pass over data in memory, of which one "
                "is all there is",
                "give --reuse 2 or more");
  }
  if (options_.gradients.strategy == GradientStrategy::servers) {
    throw Error(ErrorKind::usage,
                "parameter servers need to know beforehand what an iteration takes",
                "choose another --sync with --grow-reused");
  }
}

void Trainer::open(const NetworkFactory& factory) {
  require_reuse();
  if (!options_.trace.empty()) trace_.emplace(comm_->rank());
  if (options_.resume) find_checkpoint();
  open_data_sets();
  build_network(factory);
  if (options_.resume) restore();
  make_sync();
  collectively(*comm_, [&] {
    if (leads()) log_.emplace(options_.log, options_.resume);
  });
}

// Other nodes may not see the directory: rank 0 reads for all.
void Trainer::find_checkpoint() {
  std::string header;
  collectively(*comm_, [&] {
    if (!leads()) return;
    resumed_from_ = latest_checkpoint(options_.checkpoint);
    header = to_text(read_checkpoint_header(resumed_from_));
  });
  resumed_from_ = broadcast_text(*comm_, resumed_from_, 0);
  progress_ = parse_checkpoint_header(broadcast_text(*comm_, header, 0));
}

void Trainer::open_data_sets() {
  if (options_.loader.shard != Shard()) {
    throw Error(ErrorKind::usage, "ranks that train together are connected, and need no shards",
                "leave the loader's shard out");
  }
  LoaderOptions training = options_.loader;
  if (training.epochs > 0) training.iterations = 0;
  training.iterations = batches_at_most(training.iterations);
  LoaderOptions testing = test_options();
  if (options_.resume) {
    training = resume_options(progress_.train_state, training, comm_->size());
    if (!progress_.test_state.empty()) {
      testing = resume_options(progress_.test_state, testing, comm_->size());
    }
  }
  if (progress_.batches < training.first_iteration) {
    throw Error(ErrorKind::corrupt, "the checkpoint counts fewer batches than its data set",
                "remove it", {.file = resumed_from_, .rank = 0});
  }
  comm_->set_timeout(options_.loader.patience_with_ranks());
  const FieldNames names{.task = task_, .input = options_.input, .target = options_.target};
  training_set_.emplace(comm_, options_.dataset, training, names, trace());
  if (!options_.test.empty()) test_set_.emplace(comm_, options_.test, testing, names, trace());
}

// An iteration at the end of an epoch may take fewer. 0: no end.
std::uint64_t Trainer::batches_at_most(std::uint64_t iterations) const {
  const std::uint64_t each =
      options_.accumulate * (growing() || growing_by_pass() ? options_.growth.limit : 1);
  return iterations > UINT64_MAX / each ? 0 : iterations * each;
}

// Whatever the order of the training set, that of the test set is the one that starts no epochs.
LoaderOptions Trainer::test_options() const {
  const LoaderOptions plain;
  LoaderOptions testing = options_.loader;
  testing.coalesce = 1;
  testing.iterations = 0;
  testing.epochs = 0;
  testing.order = OrderName::strided;
  testing.group = plain.group;
  testing.keep = plain.keep;
  testing.reuse = plain.reuse;
  testing.list.clear();
  testing.ids.reset();
  return testing;
}

std::uint64_t Trainer::outputs() const {
  return task_ == Task::classify ? options_.classes : training_set_->targets();
}

void Trainer::build_network(const NetworkFactory& factory) {
  const Shape& shape = training_set_->shape();
  if (test_set_ &&
      (test_set_->shape() != shape || test_set_->targets() != training_set_->targets())) {
    throw Error(
        ErrorKind::unsupported,
        fmt::format("samples of {} with {} targets cannot test a network trained on samples "
                    "of {} with {}",
                    to_string(test_set_->shape()), test_set_->targets(), to_string(shape),
                    training_set_->targets()),
        "pack both sets with one shape", {.file = options_.test, .rank = 0});
  }
  network_ = factory({.net = options_.net,
                      .input = shape,
                      .outputs = outputs(),
                      .seed = options_.seed,
                      .mean = options_.mean,
                      .scale = options_.scale});
  solver_.emplace(options_.solver, network_->parameters().size());
}

void Trainer::make_sync() {
  GradientOptions gradients = options_.gradients;
  gradients.trace = trace();
  // Parameters are equal already where all ranks run one build on one kind of processor.
  sync_ = make_gradient_sync(comm_, *network_, *solver_, gradients,
                             [this] { training_set_->loader().check(); });
}

void Trainer::restore() {
  const auto require = [&](bool same, const std::string& what) {
    if (same) return;
    throw Error(ErrorKind::usage, "the checkpoint is of another run: it has " + what,
                "name its options, or start without --resume", {.file = resumed_from_, .rank = 0});
  };
  require(progress_.net == options_.net, "the network " + progress_.net);
  require(progress_.input == training_set_->shape(), "samples of " + to_string(progress_.input));
  require(progress_.outputs == outputs(), fmt::format("{} outputs", progress_.outputs));
  require(progress_.solver == to_string(options_.solver.kind), "the solver " + progress_.solver);
  require(progress_.seed == options_.seed, fmt::format("the seed {}", progress_.seed));
  const TrainingState arrays = state();
  collectively(*comm_, [&] {
    if (leads()) read_checkpoint(resumed_from_, arrays);
  });
  for (const auto array : {arrays.parameters, arrays.statistics, arrays.solver}) {
    comm_->broadcast(std::as_writable_bytes(array), 0);
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

// One iteration; false when the loader has no more.
// A rank that fails takes part in the sum all the same, with a loss that is no number: all ranks
// then know at the same point, and none is left behind in the middle of the sum.
bool Trainer::step() {
  std::optional<Error> failure;
  try {
    if (!compute()) return false;
  } catch (const Error& error) {
    failure = error.at_rank(comm_->rank());
  } catch (const std::exception& error) {
    failure.emplace(ErrorKind::unsupported, fmt::format("training failed: {}", error.what()), "",
                    Where{.rank = comm_->rank()});
  }
  // Where ranks are not in step, servers bring the error to the others.
  if (failure && sync_->updates_parameters()) throw Error(*failure);
  if (failure) {
    skip_batches();
    network_->loss() = std::numeric_limits<float>::quiet_NaN();
    samples_ = 0;
  }
  const std::uint64_t all_samples = exchange();
  if (!std::isfinite(network_->loss())) fail_together(failure);
  update(all_samples);
  breakdown_.images += samples_;
  log_iteration(all_samples);
  return true;
}

/// From the next batches to gradients; false after the last batch.
bool Trainer::compute() {
  batches_ = 0;
  samples_ = 0;
  network_->loss() = 0;
  do {
    if (!next_batch()) return --batches_ > 0;
    learn();
    training_set_->release();
  } while (!iteration_has_all());
  // Nothing was learned from, and nothing overwritten.
  if (samples_ == 0) std::ranges::fill(network_->gradients(), 0.0F);
  return true;
}

bool Trainer::next_batch() {
  const PhaseTimer time = timer(Phase::read);
  ++batches_;
  if (!training_set_->next()) return false;
  ++progress_.batches;
  if (batches_ == 1) grow_by_pass();
  return true;
}

bool Trainer::iteration_has_all() const {
  return batches_ >= batches_of_iteration() || (growing_by_pass() && training_set_->pass().ends) ||
         training_set_->loader().epochs_done() > progress_.epoch;
}

/// Adds what this rank's share of the batch says to loss and gradients.
void Trainer::learn() {
  {
    const PhaseTimer time = timer(Phase::decode);
    training_set_->read(options_.classes);
  }
  const TrainingBatch batch = training_set_->batch();
  if (batch.count == 0) return;
  BackwardPass pass{.weight = static_cast<float>(batch.count), .add = samples_ > 0, .ready = {}};
  {
    const PhaseTimer time = timer(Phase::forward);
    const auto rank = static_cast<std::uint64_t>(comm_->rank());
    const std::uint64_t noise = seed_of(options_.seed, progress_.iteration, rank) + batches_ - 1;
    network_->loss() += pass.weight * network_->forward(batch, noise);
  }
  const PhaseTimer time = timer(Phase::backward);
  if (iteration_has_all()) pass.ready = [this](std::size_t part) { sync_->ready(part); };
  network_->backward(pass);
  samples_ += batch.count;
}

// The loader delivers to all ranks or none: one that has failed takes the rest of its batches too.
void Trainer::skip_batches() noexcept {
  try {
    training_set_->release();
    while (!iteration_has_all() && next_batch()) training_set_->release();
  } catch (const std::exception&) {
    // The iteration fails for what came first.
  }
}

void Trainer::fail_together(const std::optional<Error>& mine) {
  if (!sync_->updates_parameters()) {
    collectively(*comm_, [&] {
      if (mine) throw *mine;
    });
  }
  throw Error(ErrorKind::usage,
              fmt::format("the loss of iteration {} is no finite number: training has diverged",
                          progress_.iteration + 1),
              "lower --lr", {.rank = 0});
}

/// Sums of gradients and means of the rest, over the samples of all ranks, whose number it returns.
std::uint64_t Trainer::exchange() {
  if (options_.measure_skew) {
    const PhaseTimer time = timer(Phase::skew);
    comm_->barrier();
  }
  const PhaseTimer time = timer(Phase::sync);
  // What no rank has samples for stays as it was.
  std::vector<float> statistics;
  if (samples_ == 0) {
    statistics.assign(network_->statistics().begin(), network_->statistics().end());
  }
  multiply(network_->statistics(), static_cast<float>(samples_));
  network_->weight() = static_cast<float>(samples_);
  sync_->finish();
  const float all_samples = network_->weight();
  if (all_samples > 0) {
    multiply(network_->statistics(), 1 / all_samples);
    network_->loss() /= all_samples;
  } else {
    std::ranges::copy(statistics, network_->statistics().begin());
  }
  return static_cast<std::uint64_t>(all_samples);
}

void Trainer::update(std::uint64_t samples) {
  if (samples == 0 || sync_->updates_parameters()) return;
  const PhaseTimer time = timer(Phase::update);
  multiply(network_->gradients(), 1 / static_cast<float>(samples));
  solver_->update(network_->parameters(), network_->gradients(), now());
}

void Trainer::log_iteration(std::uint64_t samples) {
  last_loss_ = network_->loss();
  const IterationRecord record{.iteration = progress_.iteration + 1,
                               .epoch = progress_.epoch,
                               .loss = last_loss_,
                               .learning_rate = learning_rate(options_.solver, now())};
  ++progress_.iteration;
  progress_.loss_sum += last_loss_ * static_cast<double>(samples);
  progress_.loss_count += samples;
  if (leads() && record.iteration % options_.log_every == 0) log_->write(to_json(record));
}

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
    if (leads()) write_checkpoint(options_.checkpoint, progress_, arrays);
  });
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
          .sync_strategy = sync_->strategy(),
          .sync_explanation = sync_->explain(),
          .loader = combine(gather_all(*comm_, mine)),
          .explanation = training_set_->loader().explain()};
}

void Trainer::write_timeline() {
  if (trace_) write_trace_of_ranks(*comm_, *trace_, options_.trace);
}

}  // namespace forebay
