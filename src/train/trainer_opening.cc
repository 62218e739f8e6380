// How a training begins: data sets, network, checkpoint, and who sums gradients.
#include <fmt/format.h>

#include "comm/values.hpp"
#include "core/log.hpp"
#include "forebay/error.hpp"
#include "forebay/placement.hpp"
#include "format/class_names.hpp"
#include "train/net_catalog.hpp"
#include "train/trainer.hpp"

namespace forebay {
namespace {

constexpr const char* kShared = "shared";

std::string policy_of(const TrainOptions& options) {
  const bool apart = options.gradients.strategy.own_cores;
  return apart && options.loader.placement == kShared ? "partition" : options.loader.placement;
}

}  // namespace

void place_components(Communicator& comm, TrainOptions& options, int compute_threads) {
  const std::string policy = policy_of(options);
  if (policy == kShared) return;
  const unsigned decoders = options.loader.decode_threads;
  const CorePlan plan = plan_cores(comm, policy,
                                   {.compute = static_cast<unsigned>(compute_threads),
                                    .decode = decoders > 0 ? decoders : ComponentThreads::kAny});
  options.loader.placement = options.gradients.placement = plan.to_text();
  plan.place_this_thread(Component::compute);
}

void Trainer::require_reuse() const {
  if (!growing_by_pass()) return;
  if (options_.loader.reuse == 1) {
    throw Error(ErrorKind::usage,
                "batches grow with each pass over data in memory, of which one "
                "is all there is",
                "give --reuse 2 or more");
  }
  if (options_.gradients.strategy.has_servers) {
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
    if (!leads()) return;
    if (!options_.checkpoint.empty()) remove_unfinished_checkpoints(options_.checkpoint);
    log_.emplace(options_.log, options_.resume);
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
  testing.end.reset();
  testing.order = OrderName::strided;
  testing.group = plain.group;
  testing.keep = plain.keep;
  testing.reuse = plain.reuse;
  testing.hold = plain.hold;
  testing.list.clear();
  testing.ids.reset();
  return testing;
}

std::uint64_t Trainer::outputs() const {
  return task_ == Task::classify ? options_.classes : training_set_->targets();
}

// The same on all ranks.
void Trainer::compare_classes() {
  const NamedClasses training{options_.dataset, training_set_->loader().classes()};
  const NamedClasses testing{options_.test, test_set_->loader().classes()};
  require_same_numbers(training, testing);
  if (training.names.empty() == testing.names.empty() || !leads()) return;
  const bool test = testing.names.empty();
  log(LogLevel::warning,
      "{} does not name its classes: whether their numbers are those of {} is not known; pack it "
      "with --classes",
      test ? testing.of : training.of, test ? training.of : testing.of);
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
  if (test_set_ && task_ == Task::classify) compare_classes();
  network_ = factory({.net = options_.net,
                      .input = shape,
                      .outputs = outputs(),
                      .seed = options_.seed,
                      .mean = options_.mean,
                      .scale = options_.scale});
  solver_.emplace(options_.solver, network_->parameters().size());
}

void Trainer::make_sync() {
  GradientOptions& gradients = options_.gradients;
  gradients.strategy = resolve(gradients.strategy, *comm_);
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

}  // namespace forebay
