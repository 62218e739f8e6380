// What stands behind a Loader: the reading thread of a root, the stage, and the consumer's side.
// Which samples go where is told by a derived class, one a family of orders (StridedPipeline,
// DrawPipeline).
//
//   root's reading thread:  wait for a free buffer -> fill it -> published -> next window
//   every rank:             wait until published -> batch of spans into the stage -> release
//
// The two sides meet only in the stage and on the failure board. Between open and the last batch
// the consumer's side makes no MPI call, except for failure notices; reading threads talk to each
// other where a strategy needs it (staggering, handing cursors or extents on).
#pragma once

#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "comm/failure_board.hpp"
#include "comm/progress_thread.hpp"
#include "core/placement.hpp"
#include "core/process_usage.hpp"
#include "forebay/loader.hpp"
#include "forebay/placement.hpp"
#include "forebay/trace.hpp"
#include "loader/decode_line.hpp"
#include "loader/delivery.hpp"
#include "loader/skipped_list.hpp"
#include "read/data_access.hpp"
#include "read/mpiio_reader.hpp"
#include "read/read_outline.hpp"
#include "read/read_setup.hpp"
#include "read/root_map.hpp"
#include "read/root_reader.hpp"
#include "read/stage.hpp"

namespace forebay {

class Pipeline : private BatchSource {
 public:
  /// The pipeline for the order of `options`. Collective over `comm`; see Loader::open.
  static std::shared_ptr<Pipeline> open(Communicator& comm, const std::string& path,
                                        const LoaderOptions& options, Trace* trace);
  ~Pipeline() override;
  Pipeline(const Pipeline&) = delete;
  Pipeline& operator=(const Pipeline&) = delete;

  /// Waits for the samples of the next iteration; empty after the last one.
  std::optional<Delivery> next();
  void release(std::uint64_t iteration);
  void decode(std::span<const Sample> samples, std::span<const std::span<std::byte>> fields);
  /// Fails everywhere when samples that were delivered may have changed since.
  void check_in_place();
  /// Ends the helper threads and lets the other ranks go on without this one. Idempotent, local.
  /// Who overrides it calls it in its own destructor too.
  virtual void close();

  void check();
  void fail(const Error& error);
  void set_interrupt(std::function<void()> interrupt) { interrupt_ = std::move(interrupt); }

  std::uint64_t entries() const { return facts_.entries; }
  /// By the batches that next() has given.
  std::uint64_t delivered_epochs() const { return delivered_epochs_; }
  /// Of an epoch that is not resumed.
  virtual std::uint64_t epoch_iterations() const = 0;
  /// Throws usage when the order is another one.
  virtual const StridedOrder& order() const;
  const Schema& schema() const { return codec_->schema(); }
  std::span<const std::string> parts() const { return facts_.parts; }
  std::string explain() const;
  std::string plan(bool json) const;
  /// After the batches that next() has given.
  std::string delivered_state() const;
  std::span<const SkippedSample> skipped() const { return skipped_.all(); }
  virtual LoaderStatistics statistics() const;
  /// Of the consumer's thread, which asks.
  virtual LoaderWaits waits() const;

 protected:
  Pipeline(const std::string& path, const LoaderOptions& options, Trace* trace);

  /// What decoded batches and readers leave of the memory of this rank's stage,
  std::uint64_t budget_beside_arrays() const;
  /// and the index of that: for its buffers.
  std::uint64_t buffer_budget() const;

  /// This rank and all ranks as the order knows them: with those of other shards.
  int order_rank() const { return order_rank_of(comm_->rank()); }
  int order_ranks() const { return options_.order_ranks(comm_->size()); }

  Placement placement_of(Component component) const {
    return Placement::of(setup_.cores, component);
  }

  // The order, as the derived class has it. Called in this order.

  /// Knows the data set. Collective.
  virtual void make_order() = 0;
  virtual StageShape stage_shape() const = 0;
  /// In the units in which the stage counts.
  virtual std::uint64_t first_published() const = 0;
  virtual std::shared_ptr<ReadingList> reading_list() = 0;
  /// The reading thread of this rank has started. Fails on all ranks together.
  virtual void started() {}
  /// Whether entries of the stage may point at a mapped file: nobody else uses it, and batches are
  /// decoded, that is copied, and then checked; who uses more of them asks check_in_place().
  bool may_use_in_place() const { return options_.decode && group_->size() == 1; }
  /// What a reader has to know of the order, beside its list.
  virtual void complete(ReaderSite& site) const = 0;
  /// The order in words, for explain().
  virtual std::string order_text() const = 0;

  /// Whether there is another iteration; may go on to the next epoch.
  virtual bool more() = 0;
  /// Throws usage when buffers that the next iteration needs are held.
  virtual void require_free_buffers() const = 0;
  virtual Delivery take() = 0;
  /// Of the next iteration. After more().
  virtual BatchPass pass() const { return {}; }
  /// What the next iteration needs is published from here on,
  virtual std::uint64_t needed() const = 0;
  /// and up to here; take() does not wait when that is. Nothing where it cannot be told: then no
  /// batch is decoded before it is asked for. After more().
  virtual std::optional<std::uint64_t> needed_end() const { return std::nullopt; }
  /// After all that was taken, also of batches that wait to be delivered.
  RunState state() const override = 0;
  /// Likewise.
  virtual std::uint64_t epochs_done() const = 0;
  /// What comes before `from` (as in Delivery) is held by no batch any more.
  virtual void let_go(std::uint64_t from) { stage_->release(local_rank_, from); }

  /// The caller's interrupt, in a wait of the consumer. What it throws has ended the loader.
  void ask_interrupt();
  /// Waits until `published` is in the stage.
  void wait_for_data(std::uint64_t published);
  [[noreturn]] void refuse_held_buffers() const;
  /// What take() throws when nothing is lost and batches have to be released first. Local.
  class BatchesHeld : public Error {
   public:
    using Error::Error;
  };
  /// A batch that the consumer has not released.
  struct Held {
    std::uint64_t iteration = 0;
    std::uint64_t from = 0;  ///< see Delivery
  };

  std::string path_;
  LoaderOptions options_;
  Trace* trace_;
  std::shared_ptr<Communicator> comm_;   ///< a duplicate: ours alone
  std::shared_ptr<Communicator> node_;   ///< the ranks of this node
  std::shared_ptr<Communicator> group_;  ///< those among them that share the stage
  std::shared_ptr<Communicator> roots_;  ///< all roots, on a root
  std::vector<RankGroup> groups_;        ///< all of them, their ranks numbered as in the order
  int root_ = -1;                        ///< this rank's root number, -1 when it does not read
  int local_rank_ = 0;                   ///< in the group
  ReadSetup setup_;
  std::shared_ptr<DataAccess> data_;     ///< open on roots
  DataFacts facts_;                      ///< as rank 0 knows them
  std::string identity_;                 ///< of the data set
  std::uint64_t first_value_bytes_ = 0;  ///< on rank 0
  std::optional<ReadOutline> outline_;   ///< on rank 0, when asked for
  std::shared_ptr<Stage> stage_;
  std::uint64_t iteration_ = 0;  ///< the next
  std::deque<Held> held_;
  LoaderStatistics figures_;  ///< the consumer's part
  std::shared_ptr<FailureBoard> board_;
  /// Last, so that it ends before what it uses; and what uses it before it.
  std::shared_ptr<ProgressThread> progress_;

 private:
  void open(Communicator& comm);
  void connect(Communicator& comm);
  void ask_storage(const char* what, std::function<void()> step) const;
  void recognize();
  void adapt_to_thread_level();
  void require_threads_for_mpiio() const;
  int order_rank_of(int rank) const { return options_.order_rank(rank, comm_->size()); }
  void find_groups();
  void start_progress();
  void open_data();
  void open_mpiio();
  DataFacts facts_now() const;
  void agree_on_data();
  void share_facts();
  void require_same_data(const std::string& fingerprint) const;
  void locate();
  void agree_on_values();
  void make_stage();
  void make_stagger();
  void start();
  std::uint64_t first_window() const;
  GiveUp give_up() const;
  void outline(ReadingList& list);
  std::unique_ptr<PieceReader> make_reader(ReadingList& list, Turns& turns);
  std::string describe() const;

  [[noreturn]] void fail_everywhere(const Error& error);
  std::optional<Delivery> take_now();
  void count(const Delivery& delivery);
  void plan_decoding();
  void start_decoding();
  void stop_decoding();
  std::string decoding_text() const;
  std::optional<Delivery> next_decoded();
  Delivery wait_for_decoding(DecodeLine::Lock& lock);
  DecodeLine::Lock lock_order() const;
  std::optional<std::uint64_t> next_needs() override;
  Delivery take_next() override;
  bool published(std::uint64_t end) const override;
  void wait_published(std::uint64_t end, std::chrono::milliseconds limit) override;
  void require_room(std::size_t samples, std::span<const std::span<std::byte>> fields) const;
  void decode_one(const Sample& sample, std::size_t index,
                  std::span<const std::span<std::byte>> fields) const;
  void account_wait(Interval waited);

  std::int64_t opened_ns_;
  ProcessUsage usage_at_open_;
  std::shared_ptr<EndSignal> end_signal_;
  std::string format_;               ///< of files with fields; empty for LMDB
  std::uint64_t private_bytes_ = 0;  ///< of a root, beside the stage
  std::string how_;                  ///< how records are located and read, in words
  std::shared_ptr<const Codec> codec_;
  unsigned decode_ahead_ = 0;       ///< what the memory allows of it
  std::uint64_t arrays_bytes_ = 0;  ///< of decoded batches of all ranks that share the stage
  SkippedList skipped_;
  std::function<void()> interrupt_;  ///< may be empty
  std::uint64_t delivered_epochs_ = 0;
  std::unique_ptr<Stagger> stagger_;  ///< of a root, until its reading thread takes it
  std::shared_ptr<ReadFigures> read_figures_ = std::make_shared<ReadFigures>();
  bool closed_ = false;
  ProgressThread::Registration notices_;
  std::shared_ptr<CommonSteps> steps_;  ///< of a root, where roots read together
  ProgressThread::Registration steps_served_;
  std::unique_ptr<RootReader> reader_;  ///< of a root
  std::unique_ptr<DecodeLine> line_;    ///< where batches come decoded
};

}  // namespace forebay
