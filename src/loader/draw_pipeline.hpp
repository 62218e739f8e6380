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
#include "loader/epoch_pipeline.hpp"

namespace forebay {

class DrawPipeline final : public EpochPipeline {
 public:
  DrawPipeline(const std::string& path, const LoaderOptions& options, Trace* trace)
      : EpochPipeline(path, options, trace) {}

 private:
  void plan(const OrderOptions& order) override;
  StageShape stage_shape() const override;
  std::uint64_t first_published() const override { return 0; }
  std::shared_ptr<ReadingList> reading_list() override { return feed_; }

  void require_free_buffers() const override;
  void complete(ReaderSite& site) const override;
  Delivery take() override;
  std::uint64_t needed() const override { return number_; }
  std::optional<std::uint64_t> needed_end() const override { return needed_buffers(); }
  std::uint64_t needed_buffers() const;

  std::uint64_t buffer_of(std::uint64_t draw, std::uint64_t from) const;
  void begin_buffer(std::uint64_t number, Delivery& delivery);
  Sample sample_at(std::uint64_t number, const DrawBuffer& buffer, std::uint64_t draw) const;

  std::uint64_t most_samples_ = 0;  ///< of a buffer
  std::shared_ptr<DrawFeed> feed_;
  std::uint64_t counted_ = 0;  ///< buffers whose samples are counted
  std::uint64_t number_ = 0;   ///< of the buffer that the next draw is in, or a later one
};

}  // namespace forebay
