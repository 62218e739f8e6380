// Orders that are new in every epoch. Each rank reads by itself, one buffer of the order after the
// other, as the asynchronous I/O strategy does (Lee et al., paper 003, III-B): while the consumer
// draws samples from one buffer in the order of the epoch, the reading thread loads the next.
//
//   stage of the rank   |buffer 4: on its way |buffer 3: drawn from|
//   batch               samples of buffer 3, in place; where it is used up, of buffer 4 too
//
// A batch that spans more buffers than there are waits for them with copies of its first samples.
#pragma once

#include "loader/draw_feed.hpp"
#include "loader/pipeline.hpp"

namespace forebay {

class DrawPipeline final : public Pipeline {
 public:
  DrawPipeline(const std::string& path, const LoaderOptions& options, Trace* trace)
      : Pipeline(path, options, trace) {}

  std::uint64_t epochs_done() const override;
  std::string state() const override;

 private:
  void make_order() override;
  StageShape stage_shape() const override;
  std::uint64_t first_published() const override { return 0; }
  std::shared_ptr<ReadingList> reading_list() override { return feed_; }
  void complete(ReaderSite& site) const override { site.keep_bytes = keep_bytes_; }
  std::string order_text() const override { return identity_of_order_; }

  bool more() override;
  void require_free_buffers() const override;
  Delivery take() override;
  std::uint64_t needed() const override { return number_; }
  std::optional<std::uint64_t> needed_end() const override { return needed_buffers(); }
  std::uint64_t needed_buffers() const;

  void read_list();
  SharedNumbers bounds() const;
  OrderOptions order_options() const;
  RunLimits limits() const;
  void require_same_order() const;
  std::uint64_t buffer_of(std::uint64_t draw, std::uint64_t from) const;
  void begin_buffer(std::uint64_t number, Delivery& delivery);
  void copy_out(Delivery& delivery) const;
  Sample sample_at(std::uint64_t number, std::uint64_t draw) const;

  std::string identity_of_order_;
  std::uint64_t most_samples_ = 0;  ///< of a buffer
  std::uint64_t keep_bytes_ = 0;    ///< see ReaderSite
  std::optional<RunEpochs> epochs_;
  std::optional<RunEpoch> epoch_;  ///< the present one; stays when the run has ended
  std::uint64_t step_ = 0;         ///< the next iteration, counted in the epoch
  std::shared_ptr<DrawFeed> feed_;
  std::uint64_t number_ = 0;  ///< of the buffer that the next draw is in, or a later one
};

}  // namespace forebay
