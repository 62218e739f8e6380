// The object that a training loop iterates.
//
//   auto loader = forebay::Loader::open(comm, "train.lmdb", {.batch = 256, .iterations = 1000});
//   while (auto batch = loader.next()) {
//     for (const forebay::Sample& sample : batch->samples()) use(sample.value);
//   }
//
// A batch points into the stage: nothing is copied for the consumer. It stays valid until it is
// released (destroyed, or released by hand); as long as it is held, its buffer cannot be refilled.
//
// Which order: LoaderOptions::order. In the strided one few ranks of a node read for all. In orders
// that are new in every epoch (forebay/epoch_order.hpp) each rank reads by itself: while its
// consumer draws samples from one buffer, the next is loaded, as in the asynchronous I/O strategy
// of Lee et al. (paper 003, III). Epochs follow each other until a limit ends the run.
// Where samples come out of the memory of all ranks (in_memory, LoaderOptions::hold, reuse across
// ranks; DeepIO, paper 004, III), they are fetched ahead of use into a read buffer, and a batch
// points into that. Ranks then need each other: one that is destroyed serves the others on for up
// to 5 seconds, after which those that still want data get the cancelled error.
//
// Errors are collective: when one rank fails, every rank's next call throws the same Error within
// one window or 5 seconds. After that the loader only wants to be destroyed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "forebay/communicator.hpp"
#include "forebay/dataset.hpp"
#include "forebay/error.hpp"
#include "forebay/options.hpp"
#include "forebay/order.hpp"
#include "forebay/sample_seed.hpp"
#include "forebay/statistics.hpp"

namespace forebay {

class DecodedArrays;
class Pipeline;
class Trace;

/// One sample of a batch. The spans point into the stage, or into the batch where a batch is longer
/// than all buffers; of decoded batches perhaps into the mapped file, which was checked for changes
/// after it was decoded: see Batch::check_unchanged().
struct Sample {
  std::uint64_t id = 0;      ///< 0..N-1
  std::uint64_t global = 0;  ///< position in the order, as if no run had been resumed
  std::uint64_t epoch = 0;
  std::uint64_t position = 0;  ///< index within this rank's share of the batch
  std::uint64_t run_seed = 0;
  std::span<const std::byte> key;  ///< empty where samples have none: files with fields
  /// As stored. Of several parts (Loader::parts()): packed or, in batches that came decoded, told
  /// where they are, see forebay/packed_parts.hpp: split_parts() gives the parts of both. Of files
  /// with fields (HDF5, .npy, records): all fields of schema() in its order, before any transform,
  /// one behind the other, in the byte order of this machine.
  std::span<const std::byte> value;
  bool repeat = false;  ///< only fills a batch at the end, see OrderEnd

  /// For augmentation. Worked out when asked for: delivering a sample does not pay for it.
  std::uint64_t seed() const { return sample_seed(run_seed, epoch, id); }
};

/// What the consumer has waited for so far, in seconds; see LoaderStatistics.
struct LoaderWaits {
  double data = 0;      ///< exposed I/O
  double decoding = 0;  ///< of data that were there
  double ranks = 0;     ///< slower ones
};

/// A sample that was left out of its batch, with LoaderOptions::undecodable = skip.
struct SkippedSample {
  std::uint64_t id = 0;
  std::string key;      ///< printable, see printable_key()
  std::string message;  ///< what is wrong with it
};

/// Where a batch stands among the deliveries of what is in memory (LoaderOptions::reuse): the same
/// on all ranks. Without reuse, and in the strided order, always the first.
struct BatchPass {
  std::uint64_t number = 0;  ///< 0..reuse-1: how often its samples were delivered before
  bool ends = false;         ///< the next batch belongs to another one, or to another epoch
};

/// This rank's share of one iteration. Movable; released at destruction. Release batches in the
/// order in which they came, from the thread that uses the loader.
class Batch {
 public:
  Batch() = default;
  Batch(Batch&& other) noexcept;
  Batch& operator=(Batch&& other) noexcept;
  ~Batch();

  /// Counted over the run. Orders that are new in every epoch go on counting when a run is resumed,
  /// the strided one only on the same ranks with the same batch, and not behind the end of
  /// `epochs`.
  std::uint64_t iteration() const { return iteration_; }
  /// Epoch of the first sample; in the strided order a batch may reach into the next.
  std::uint64_t epoch() const { return epoch_; }
  /// A batch that reaches over the end of a pass counts to the one in which it begins.
  BatchPass pass() const { return pass_; }
  /// Without those that were skipped, which leave gaps in Sample::position.
  std::span<const Sample> samples() const { return samples_; }
  /// The decoded field number `index` of all samples(), one after the other: samples().size() *
  /// Field::bytes() bytes, in the order of Loader::schema(). The memory is the loader's and serves
  /// another batch after release(). Throws usage without LoaderOptions::decode, and for a field
  /// that does not exist.
  std::span<const std::byte> field(std::size_t index) const;
  std::span<const std::byte> field(std::string_view name) const;
  /// For who uses keys and values of samples() although the batch came decoded: asked afterwards,
  /// throws changed or io, on all ranks, when they may have been other bytes than those that were
  /// read. What field() gives needs no such question. Before release(), while the loader lives;
  /// else usage. Local and cheap.
  void check_unchanged() const;
  void release();
  /// Keeps what field() points to as long as the result lives, also past release() and the loader:
  /// for arrays that others own. Null where the batch did not come decoded.
  std::shared_ptr<const void> share_fields() const { return arrays_; }

 private:
  friend class Loader;
  const DecodedArrays& arrays() const;

  std::shared_ptr<Pipeline> pipeline_;
  std::vector<Sample> samples_;
  std::vector<std::unique_ptr<std::byte[]>> copies_;  ///< of what no buffer holds any more
  std::shared_ptr<const DecodedArrays> arrays_;       ///< null when nothing was decoded
  std::uint64_t iteration_ = 0;
  std::uint64_t epoch_ = 0;
  BatchPass pass_;
};

/// Thread-safety: one thread at a time. Helper threads are the loader's own affair.
class Loader {
 public:
  /// Opens `dataset` on all ranks of `comm`: an LMDB directory or file, "#NAME" for a named
  /// database, "A,B" and "x=A&y=B" for several; or files with fields, "FILES#FIELDS"
  /// (docs/formats.md). Collective: all ranks
  /// succeed, or all throw the same Error. `trace` (optional) must outlive the loader.
  static Loader open(std::shared_ptr<Communicator> comm, const std::string& dataset,
                     const LoaderOptions& options, Trace* trace = nullptr);
  Loader(Loader&&) noexcept;
  Loader& operator=(Loader&&) noexcept;
  /// Local; ends the helper threads. Other ranks that still want data get a cancelled error.
  ~Loader();

  /// The next batch; empty after the last iteration. Waits for data at most `timeout`. Throws usage
  /// on this rank alone, with nothing lost, when every buffer is held by batches not yet released.
  std::optional<Batch> next();

  /// Decodes every sample of `batch` into contiguous arrays, one span a schema field, each of
  /// samples * Field::bytes() bytes, in the calling thread: for those who bring their own memory.
  /// Throws, on all ranks, corrupt naming sample and key, and usage when the arrays do not fit.
  void decode(const Batch& batch, std::span<const std::span<std::byte>> fields);

  /// Samples of this rank that were left out of the batches that next() gave, each once, the first
  /// thousand of them; LoaderStatistics::skipped counts all, in every epoch anew. Local.
  std::span<const SkippedSample> skipped() const;

  /// Throws what another rank failed with, if any did. Local and cheap: suits as the interrupt of
  /// other communicators while they wait.
  void check();
  /// Makes every rank's next call throw `error`. Local.
  void fail(const Error& error);
  /// Called every 100 ms or so while next() waits, in its thread; may throw to end the wait, which
  /// ends the loader on all ranks (others see cancelled).
  void set_interrupt(std::function<void()> interrupt);

  std::uint64_t entries() const;
  /// Iterations of an epoch that is not resumed. In the strided order: of the first of the run.
  std::uint64_t epoch_iterations() const;
  /// Epochs of which next() has given the last batch, those before a resumed run included. In the
  /// strided order: of which it has given every sample, or all that `drop` takes of the last.
  std::uint64_t epochs_done() const;
  const Schema& schema() const;
  /// Names of the parts of each sample, where it is put together of several records: its value is
  /// then packed (forebay/packed_parts.hpp). Empty where a sample is one record, or fields.
  std::span<const std::string> parts() const;
  /// As Samples::classes(). The same on all ranks.
  std::span<const std::string> classes() const;
  /// Throws usage when the order is another one.
  const StridedOrder& order() const;
  /// One line: the strategy, engine, roots and sizes that were chosen, and why.
  std::string explain() const;
  /// What rank 0 reads for its first window, or buffer of an order that is new in every epoch:
  /// requests, sizes, bytes, memory, amplification; text for people, or one JSON object. Empty
  /// without the option `explain`, off rank 0, and where records are found by walking.
  std::string plan(bool json = false) const;
  /// This rank's figures so far. Local.
  LoaderStatistics statistics() const;
  /// The part of statistics() that tells what a step has waited for: cheap, for every step. Local.
  LoaderWaits waits() const;
  /// Small JSON value from which a run on the same data set and order goes on: fingerprint, order
  /// and its parameters (seed among them), epoch, and the iterations done on each number of ranks
  /// and batch. Only batches that next() has given count, however far reading is ahead.
  std::string state() const;

 private:
  explicit Loader(std::shared_ptr<Pipeline> pipeline);
  std::shared_ptr<Pipeline> pipeline_;
};

/// Checks `state` (from Loader::state) against the options of the new run and the ranks of its
/// communicator (which LoaderOptions::shard multiplies), and returns options that continue it:
/// identically on the same ranks and batch. With others, what is left of the order (of its epoch,
/// where each has its own) is dealt anew, in order, also where the run stopped inside a coalesced
/// window: nothing is repeated or lost. The data set itself, and the parameters of an order that is
/// new in every epoch, are checked in open. Throws usage.
LoaderOptions resume_options(const std::string& state, LoaderOptions options, int ranks);

}  // namespace forebay
