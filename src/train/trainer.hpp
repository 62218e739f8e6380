// Data-parallel training: every rank holds the whole network and a share of each batch.
//
//   each iteration   (read | decode | forward | backward) * accumulate | sum over ranks | update
//   each epoch       test on the test set, checkpoint
//
// Gradients are weighted by this rank's samples, summed over ranks together with running
// statistics, the loss and the number of samples (see gradient_sync.hpp), and divided by the
// latter. So all ranks hold identical networks after every iteration, short or empty shares at the
// end of an epoch count for what they hold, and a run gives the same numbers whatever the strategy
// that read its data. Samples that an order repeats to fill a batch are trained on like all others.
//
// An iteration may add up the gradients of several batches of the loader: then it ends with the
// epoch all the same, and the ranks' sums travel during the backward pass of its last batch.
//
// An epoch ends with its last batch. In the strided order that is the first iteration after which
// every sample of it has been used: the data set is circular there, a batch may reach into the next
// epoch. The test set is read in that order always; a test counts each test sample once.
//
// Errors are collective: what one rank throws reaches all ranks through their loaders.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "forebay/communicator.hpp"
#include "forebay/error.hpp"
#include "forebay/options.hpp"
#include "forebay/statistics.hpp"
#include "train/batch_reader.hpp"
#include "train/breakdown.hpp"
#include "train/checkpoint.hpp"
#include "train/gradient_sync.hpp"
#include "train/network.hpp"
#include "train/run_log.hpp"
#include "train/solver.hpp"

namespace forebay {

struct TrainOptions {
  std::string dataset;
  std::string test;  ///< data set to test on after each epoch; empty: none
  std::string net = "lenet";
  std::uint64_t classes = 10;  ///< for networks that classify
  std::string input;           ///< fields to learn from and for; empty: see BatchReader
  std::string target;
  std::uint64_t seed = 1;
  float mean = 0;  ///< see NetworkOptions
  float scale = 1;
  SolverOptions solver;
  /// Batch, strategy and everything else about reading. The run ends after its `epochs`, or after
  /// its `iterations` if that is sooner; one of the two must be set.
  LoaderOptions loader;
  std::string checkpoint;               ///< directory; empty: none are written
  std::uint64_t checkpoint_every = 0;   ///< iterations between checkpoints within an epoch; 0: none
  std::uint64_t keep_checkpoints = 10;  ///< the latest of this run; older ones go; 0: all stay
  bool resume = false;                  ///< from the latest checkpoint in `checkpoint`
  std::string log;                      ///< file for the JSON lines of run_log.hpp; empty: none
  std::uint64_t log_every = 1;          ///< iterations between its lines
  std::string trace;                    ///< file for a timeline that Perfetto opens; empty: none
  GradientOptions gradients;            ///< their trace is that of the run
  std::uint64_t accumulate = 1;         ///< batches of the loader for each iteration,
  GrowthOptions growth;                 ///< and how this number grows; needs a test set
  bool measure_skew = false;  ///< a barrier before the end of each sum tells skew and sync apart
};

/// What a run ends with. `ranks`, `sync` and `loader` are filled on rank 0 only.
struct TrainReport {
  std::uint64_t iterations = 0;
  std::uint64_t epochs = 0;
  double loss = 0;  ///< of the last iteration
  std::optional<TestScore> test;
  std::vector<Breakdown> ranks;
  std::vector<GradientStatistics> sync;  ///< by rank
  SyncWay sync_strategy;                 ///< not `auto`, but what it was
  std::string sync_explanation;          ///< how gradients were summed
  LoaderStatistics loader;               ///< of the training set, over all ranks
  std::string explanation;               ///< how the training set was read
};

/// One line, without its end.
std::string to_line(const EpochRecord& record, std::uint64_t epochs);

/// The table of where the time went, and the results.
std::string to_text(const TrainReport& report);

/// One JSON object:
/// {"event":"summary",...,"ranks":[{"read":...},...],"sync":{...,"ranks":[...]},"loader":{...}}.
std::string to_json(const TrainReport& report);

/// What --placement says, or `partition` where --sync asks for cores of their own and it says
/// nothing; written into the options of loader and gradients. Binds the calling thread to the cores
/// that compute, so call it before there are threads that compute. Collective. Throws usage.
void place_components(Communicator& comm, TrainOptions& options, int compute_threads);

class Trainer {
 public:
  /// Told of each finished epoch, on rank 0.
  using EpochListener = std::function<void(const EpochRecord&)>;

  /// Opens the data sets, builds the network and restores the checkpoint. Collective.
  Trainer(const std::shared_ptr<Communicator>& comm, TrainOptions options,
          const NetworkFactory& factory, EpochListener listener = {});

  /// Trains until the end of the last epoch. Collective; once.
  TrainReport run();

 private:
  void require_reuse() const;
  void open(const NetworkFactory& factory);
  void find_checkpoint();
  void open_data_sets();
  void compare_classes();
  void build_network(const NetworkFactory& factory);
  void make_sync();
  void restore();

  void train();
  bool step();
  bool compute();
  bool next_batch();
  bool iteration_has_all() const;
  void learn();
  void skip_batches() noexcept;
  [[noreturn]] void fail_together(const std::optional<Error>& mine);
  std::uint64_t exchange();
  void update(std::uint64_t samples);
  void log_iteration(std::uint64_t samples);
  void begin_stretch();
  void finish_epoch();
  void grow();
  void grow_by_pass();
  void log_growth();
  TestScore test();
  void save();
  TrainReport report();
  void write_timeline();

  LoaderOptions test_options() const;
  std::uint64_t outputs() const;
  std::uint64_t batches_of_iteration() const {
    return options_.accumulate * progress_.growth.factor;
  }
  double part_taken() const;
  std::uint64_t batches_at_most(std::uint64_t iterations) const;
  RunTime now() const;
  TrainingState state();
  std::uint64_t epochs_wanted() const;
  bool done() const;
  void together(const std::function<void()>& steps);
  PhaseTimer timer(Phase phase) { return {breakdown_, phase, trace(), progress_.iteration}; }
  Trace* trace() { return trace_ ? &*trace_ : nullptr; }
  bool growing() const { return options_.growth.threshold.has_value(); }
  bool growing_by_pass() const { return options_.growth.reused.has_value(); }
  bool leads() const { return comm_->rank() == 0; }

  std::shared_ptr<Communicator> comm_;
  TrainOptions options_;
  Task task_;
  EpochListener listener_;
  std::optional<Trace> trace_;
  std::optional<BatchReader> training_set_;
  std::optional<BatchReader> test_set_;
  std::unique_ptr<Network> network_;
  std::optional<Solver> solver_;
  std::unique_ptr<GradientSync> sync_;  ///< ends before the network does
  std::optional<RunLog> log_;
  std::string resumed_from_;
  CheckpointHeader progress_;
  std::optional<TestScore> last_test_;
  float last_loss_ = 0;
  std::uint64_t batches_ = 0;  ///< that this iteration has asked for,
  std::uint64_t samples_ = 0;  ///< and this rank's samples in them
  Breakdown breakdown_;
  double training_begin_ = 0;  ///< see now_seconds()
};

}  // namespace forebay
