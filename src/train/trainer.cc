#include "train/trainer.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <utility>

#include "core/clock.hpp"
#include "core/trace.hpp"
#include "forebay/error.hpp"

namespace forebay {
namespace {

/// A seed that depends on all three numbers (the finalizer of SplitMix64 between them).
std::uint64_t mix(std::uint64_t seed, std::uint64_t iteration, std::uint64_t rank) {
  std::uint64_t state = seed;
  for (const std::uint64_t number : {iteration, rank}) {
    state += number + 0x9e3779b97f4a7c15U;
    state = (state ^ (state >> 30)) * 0xbf58476d1ce4e5b9U;
    state = (state ^ (state >> 27)) * 0x94d049bb133111ebU;
    state ^= state >> 31;
  }
  return state;
}

/// Iterations until `positions` positions of an order like `order` are covered.
std::uint64_t iterations_to_cover(const StridedOrder& order, std::uint64_t positions) {
  if (positions == 0) return 0;
  return StridedOrder(positions, order.ranks(), order.batch(), order.coalesce()).iterations(1);
}

/// One plain value of every rank, on all ranks.
template <typename T>
std::vector<T> from_all(Communicator& comm, const T& mine) {
  std::vector<T> all(static_cast<std::size_t>(comm.size()));
  comm.all_gather(std::as_bytes(std::span(&mine, 1)), std::as_writable_bytes(std::span(all)));
  return all;
}

}  // namespace

Trainer::Trainer(std::shared_ptr<Communicator> comm, TrainOptions options,
                 const NetworkFactory& factory, EpochListener listener)
    : comm_(comm->split(0, comm->rank())),
      options_(std::move(options)),
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

// Ends all ranks when one fails: the loaders carry the error to where the others wait.
void Trainer::together(const std::function<void()>& steps) {
  const auto tell = [this](const Error& error) {
    if (training_set_) training_set_->loader().fail(error);
    if (test_set_) test_set_->loader().fail(error);
  };
  try {
    steps();
  } catch (const Error& error) {
    tell(error.at_rank(comm_->rank()));
    throw;
  } catch (const std::exception& failure) {
    const Error error(ErrorKind::unsupported, fmt::format("training failed: {}", failure.what()));
    tell(error.at_rank(comm_->rank()));
    throw error;
  }
}

void Trainer::open(const NetworkFactory& factory) {
  std::string path;
  std::string saved;
  if (options_.resume) {
    // Other nodes may not see the directory: rank 0 reads for all.
    collectively(*comm_, [&] {
      if (!leads()) return;
      path = latest_checkpoint(options_.checkpoint);
      saved = to_text(read_checkpoint_header(path));
    });
    progress_ = parse_checkpoint_header(broadcast_text(*comm_, saved, 0));
  }
  if (!options_.trace.empty()) trace_.emplace(comm_->rank());
  Trace* const trace = trace_ ? &*trace_ : nullptr;

  LoaderOptions training = options_.loader;
  // The limit is one of the whole run; see last_iteration().
  training.iterations = 0;
  LoaderOptions testing = training;
  testing.coalesce = 1;
  if (options_.resume) {
    training = resume_options(progress_.train_state, training, comm_->size());
    if (!progress_.test_state.empty()) {
      testing = resume_options(progress_.test_state, testing, comm_->size());
    }
  }
  training_set_.emplace(comm_, options_.dataset, training, trace);
  earlier_iterations_ = progress_.iteration - training.first_iteration;
  if (!options_.test.empty()) test_set_.emplace(comm_, options_.test, testing, trace);
  comm_->set_interrupt([this] {
    training_set_->loader().check();
    if (test_set_) test_set_->loader().check();
  });
  build_network(factory);
  restore(path);
  collectively(*comm_, [&] {
    if (leads()) log_.emplace(options_.log, options_.resume);
  });
}
