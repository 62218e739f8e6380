// What stands behind a Loader: the reading thread of a root, the stage, and the consumer's side.
//
//   root's reading thread:  wait for a free buffer -> fill it -> published -> next window
//   every rank:             wait until published -> batch of spans into the stage -> release
//
// The two sides meet only in the stage and on the failure board. Between open and the last batch
// the consumer's side makes no MPI call, except for failure notices; reading threads talk to each
// other where a strategy needs it (staggering, handing cursors or extents on).
#pragma once

#include <deque>
#include <memory>
#include <optional>
#include <string>

#include "comm/failure_board.hpp"
#include "comm/progress_thread.hpp"
#include "core/placement.hpp"
#include "core/process_usage.hpp"
#include "forebay/loader.hpp"
#include "forebay/trace.hpp"
#include "read/locate.hpp"
#include "read/read_outline.hpp"
#include "read/read_setup.hpp"
#include "read/root_map.hpp"
#include "read/root_reader.hpp"
#include "read/stage.hpp"

namespace forebay {

class Pipeline {
 public:
  /// Collective over `comm`; see Loader::open.
  Pipeline(Communicator& comm, const std::string& path, const LoaderOptions& options, Trace* trace);
  ~Pipeline();
  Pipeline(const Pipeline&) = delete;
  Pipeline& operator=(const Pipeline&) = delete;

  /// Waits for the samples of the next iteration; empty after the last one.
  std::optional<std::vector<Sample>> next();
  /// The iteration that next() gives next.
  std::uint64_t iteration() const { return iteration_; }
  void release(std::uint64_t iteration);
  void decode(std::span<const Sample> samples, std::span<const std::span<std::byte>> fields);
  /// Ends the helper threads and lets the other ranks go on without this one. Idempotent, local.
  void close();

  void check();
  void fail(const Error& error);

  const StridedOrder& order() const { return map_->order(); }
  const Schema& schema() const { return codec_->schema(); }
  std::string explain() const;
  std::string plan(bool json) const;
  std::string state() const;
  LoaderStatistics statistics() const;

 private:
  void connect(Communicator& comm);
  void adapt_to_thread_level();
  void find_groups();
  void start_progress();
  void open_data();
  void agree_on_data();
  void require_same_data(const std::string& fingerprint) const;
  void locate();
  void agree_on_values();
  void make_order();
  void make_stage();
  void make_stagger();
  void start();
  std::unique_ptr<PieceReader> make_reader(RecordSource& source, Turns& turns);
  std::string describe() const;
  void outline_first_window();

  [[noreturn]] void fail_everywhere(const Error& error);
  void wait_for_data();
  void require_free_buffer() const;
  void require_room(std::size_t samples, std::span<const std::span<std::byte>> fields) const;
  void decode_one(const Sample& sample, std::size_t index,
                  std::span<const std::span<std::byte>> fields) const;
  void account_wait(Interval waited);
  std::vector<Sample> samples_of(std::uint64_t iteration) const;
  Sample sample_at(std::uint64_t iteration, const Run& run, std::uint64_t position) const;

  std::string path_;
  LoaderOptions options_;
  Trace* trace_;
  std::int64_t opened_ns_;
  ProcessUsage usage_at_open_;

  std::shared_ptr<Communicator> comm_;   ///< a duplicate: ours alone
  std::shared_ptr<Communicator> group_;  ///< the ranks that share the stage
  std::vector<RankGroup> groups_;        ///< all of them
  int root_ = -1;                        ///< this rank's root number, -1 when it does not read
  ReadSetup setup_;
  std::shared_ptr<FailureBoard> board_;
  std::shared_ptr<EndSignal> end_signal_;
  std::shared_ptr<Communicator> roots_;  ///< all roots, on a root
  OpenedData data_;                      ///< of a root, until its reading thread takes it
  Located located_;                      ///< likewise
  std::uint64_t entries_ = 0;
  std::uint64_t stored_bytes_ = 0;
  bool local_data_ = false;  ///< on a device of rank 0's node
  std::string identity_;
  std::uint64_t first_value_bytes_ = 0;  ///< on rank 0
  std::string how_;                      ///< how records are located and read, in words
  std::optional<ReadOutline> outline_;   ///< on rank 0, when asked for
  std::shared_ptr<const Codec> codec_;
  std::shared_ptr<const RootMap> map_;
  const WindowPlan* plan_ = nullptr;  ///< of this rank's group, inside map_
  std::shared_ptr<Stage> stage_;
  std::unique_ptr<Stagger> stagger_;  ///< of a root, until its reading thread takes it

  std::uint64_t end_ = 0;  ///< iterations in all
  int local_rank_ = 0;     ///< in the group
  std::uint64_t iteration_ = 0;
  std::deque<std::uint64_t> held_;  ///< iterations that the consumer has not released
  LoaderStatistics figures_;        ///< the consumer's part
  std::shared_ptr<ReadFigures> read_figures_ = std::make_shared<ReadFigures>();
  bool closed_ = false;
  // Last, so that they end before what they use.
  std::unique_ptr<ProgressThread> progress_;
  ProgressThread::Registration notices_;
  std::unique_ptr<RootReader> reader_;  ///< of a root
};

}  // namespace forebay
