// One iteration of a training: batches, gradients, their sum, the update.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/copy_values.hpp"
#include "core/mix.hpp"
#include "forebay/error.hpp"
#include "train/trainer.hpp"

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
    copy_values(statistics, network_->statistics());
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

}  // namespace forebay
