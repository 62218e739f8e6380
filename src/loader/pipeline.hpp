// What stands behind a Loader: the reading thread of a root, the stage, and the consumer's side.
//
//   root's reading thread:  wait for a free buffer -> fill it -> published -> next window
//   every rank:             wait until published -> batch of spans into the stage -> release
//
// The two sides meet only in the stage and on the failure board. Between open and the last batch
// the consumer's side makes no MPI call, except for failure notices; reading threads talk to each
// other where a strategy needs it (staggering, handing cursors or extents on).
//
// Each part has one question: Opened (what is read, by whom), Reading (how does it get into the
// stage), Feed (whose is which sample, and where does the run stand), Watch (must this rank stop),
// DecodeLine (what is decoded), HeldBatches (what must stay), RunFigures (what did it cost).
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "core/non_copyable.hpp"
#include "forebay/loader.hpp"
#include "loader/decode_line.hpp"
#include "loader/feed.hpp"
#include "loader/reading.hpp"
#include "loader/run_figures.hpp"

namespace forebay {

class Pipeline final : private BatchSource, private NonCopyable {
 public:
  /// Collective over `comm`; see Loader::open.
  static std::shared_ptr<Pipeline> open(Communicator& comm, const std::string& path,
                                        const LoaderOptions& options, Trace* trace);
  ~Pipeline() override { close(); }

  /// Waits for the samples of the next iteration; empty after the last one.
  std::optional<Delivery> next();
  void release(std::uint64_t iteration);
  void decode(std::span<const Sample> samples, std::span<const std::span<std::byte>> fields);
  /// Fails everywhere when samples that were delivered may have changed since.
  void check_in_place() const;
  /// Ends the helper threads and lets the other ranks go on without this one. Idempotent, local.
  void close();

  Watch& watch() { return watch_; }
  std::uint64_t entries() const { return opened_.source.facts.entries; }
  /// By the batches that next() has given.
  std::uint64_t delivered_epochs() const { return figures_.epochs_done(); }
  /// Of an epoch that is not resumed.
  std::uint64_t epoch_iterations() const { return plan_.epoch_iterations; }
  /// Throws usage when the order is another one.
  const StridedOrder& order() const;
  const Schema& schema() const { return opened_.codec->schema(); }
  std::span<const std::string> parts() const { return opened_.source.facts.parts; }
  std::span<const std::string> classes() const { return opened_.source.facts.classes; }
  std::string explain() const;
  std::string plan(bool json) const;
  /// After the batches that next() has given.
  std::string delivered_state() const;
  std::span<const SkippedSample> skipped() const { return figures_.skipped(); }
  LoaderStatistics statistics() const;
  /// Of the consumer's thread, which asks.
  LoaderWaits waits() const;

 private:
  Pipeline(const RunStart& start, Opened opened, FeedPlan plan, std::shared_ptr<Stage> stage,
           Trace* trace);
  void start();
  void start_decoding();

  std::optional<Delivery> take_now();
  void require_free_buffers() const;
  bool has_room(std::uint64_t end) const;
  std::optional<Delivery> next_decoded();
  Delivery wait_for_decoding(DecodeLine::Lock& lock);
  DecodeLine::Lock lock_order() const { return line_ ? line_->lock() : DecodeLine::Lock(); }
  Delivery take(const BatchPass& pass);
  void decode_all(std::span<const Sample> samples,
                  std::span<const std::span<std::byte>> fields) const;

  // For the line.
  std::optional<std::uint64_t> next_needs() override;
  Delivery take_next() override;
  RunState state() const override { return feed_->state(); }
  bool published(std::uint64_t end) const override;
  void wait_published(std::uint64_t end, std::chrono::milliseconds limit) override;

  Opened opened_;
  FeedPlan plan_;
  std::shared_ptr<Stage> stage_;
  Trace* trace_;
  Watch watch_;
  DataWait data_;
  HeldBatches held_;
  Reading reading_;
  std::unique_ptr<Feed> feed_;
  std::unique_ptr<DecodeLine> line_;  ///< where batches come decoded
  RunFigures figures_;
  bool closed_ = false;
};

}  // namespace forebay
