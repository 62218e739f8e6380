// Orders whose samples come out of the memory of all ranks, as in DeepIO (Zhu et al., MASCOTS 2018,
// section III). Each rank reads its part, in long reads, and any rank fetches from there:
//
//   reading thread   file -> stage, some MB at a time
//   filling thread   stage -> this rank's share of the exchange; opens it together with all ranks
//   fetching thread  any share -> read buffer, in the order of this rank's draws, ahead of use
//   consumer         batches of spans into the read buffer
//
// Held data (the whole data set fits) are read once, and serve every epoch; else the exchange has
// two fillings, one of which is loaded while the other serves.
#pragma once

#include "exchange/read_buffer.hpp"
#include "loader/epoch_pipeline.hpp"
#include "loader/share_filler.hpp"
#include "loader/share_memory.hpp"

namespace forebay {

class SharedPipeline final : public EpochPipeline {
 public:
  /// Whether this is the pipeline for `options`, which are valid.
  static bool suits(const LoaderOptions& options, int ranks);

  SharedPipeline(const std::string& path, const LoaderOptions& options, Trace* trace)
      : EpochPipeline(path, options, trace) {}
  SharedPipeline(const SharedPipeline&) = delete;
  SharedPipeline& operator=(const SharedPipeline&) = delete;
  ~SharedPipeline() override { close(); }

  void close() override;
  LoaderStatistics statistics() const override;
  LoaderWaits waits() const override;

 private:
  void plan(const OrderOptions& order) override;
  StageShape stage_shape() const override;
  std::uint64_t first_published() const override { return 0; }
  std::shared_ptr<ReadingList> reading_list() override { return feed_; }
  void started() override;
  std::string order_text() const override;

  void require_free_buffers() const override {}
  Delivery take() override;
  std::uint64_t needed() const override { return delivered_; }
  void let_go(std::uint64_t from) override;

  void require_threads() const;
  ShareNeeds needs(const OrderOptions& order);
  SampleSizes sample_sizes();
  void look_at_samples(SampleSizes& sizes);
  void make_exchange();
  ReadBuffer::Source source() const;
  void take_ready(std::uint64_t first, std::uint64_t count);
  void make_room();
  void end_filling();

  std::chrono::milliseconds patience_with_loads() const;

  bool held_data_ = false;          ///< as opposed to loads that replace each other
  std::uint64_t load_samples_ = 0;  ///< of one load, at most
  ShareMemory memory_;
  std::shared_ptr<LoadFeed> feed_;
  std::shared_ptr<OpenedLoads> loads_ = std::make_shared<OpenedLoads>();
  std::shared_ptr<Communicator> filling_;   ///< for the thread that fills
  std::shared_ptr<Communicator> farewell_;  ///< for its end
  std::shared_ptr<Exchange> exchange_;
  std::shared_ptr<ShareFiller> filler_;
  std::optional<ReadBuffer> buffer_;
  std::string exchange_text_;
  LoaderStatistics at_end_;  ///< figures of what close() has ended

  /// The next batch, as far as it is there: kept when batches have to be released first.
  Delivery pending_;
  std::vector<const Block*> ready_;
  // Counted in samples of the read buffer, from the start.
  std::uint64_t taken_ = 0;
  std::uint64_t delivered_ = 0;
  std::uint64_t released_ = 0;
};

}  // namespace forebay
