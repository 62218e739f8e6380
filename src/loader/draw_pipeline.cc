#include "loader/draw_pipeline.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "order/most_loaded.hpp"

namespace forebay {

void DrawPipeline::plan(const OrderOptions& order) {
  collectively(*comm_, [&] {
    most_samples_ = most_loaded(order, !options_.done.empty());
    // Batches that are held keep buffers, decoded or not: several may be of as many pieces.
    const auto begin = options_.one_at_a_time ? DrawFeed::Begin::small : DrawFeed::Begin::whole;
    feed_ = std::make_shared<DrawFeed>(*epochs_, order_rank(), most_samples_, begin);
  });
}

StageShape DrawPipeline::stage_shape() const {
  return {.ranks = 1,
          .roots = 1,
          .buffers = options_.buffers,
          .coalesce = 1,
          .entries = most_samples_,
          .data_bytes = buffer_budget()};
}

void DrawPipeline::complete(ReaderSite& site) const { site.in_place = may_use_in_place(); }

/// The number of the buffer that serves `draw`, `from` or a later one.
std::uint64_t DrawPipeline::buffer_of(std::uint64_t draw, std::uint64_t from) const {
  for (std::uint64_t number = from;; ++number) {
    const auto buffer = feed_->at(number);
    if (buffer && buffer->serves(epoch_->order.epoch(), draw)) return number;
    if (buffer) continue;
    throw Error(ErrorKind::communication, fmt::format("no buffer holds draw {}", draw),
                "this is a fault of Forebay: please report it");
  }
}

void DrawPipeline::require_free_buffers() const {
  if (held_.empty()) return;
  if (needed_buffers() > held_.front().from + static_cast<std::uint64_t>(options_.buffers)) {
    refuse_held_buffers();
  }
}

/// Without samples nothing is needed, that is, nothing but what was drawn from already.
std::uint64_t DrawPipeline::needed_buffers() const {
  const Share share = epoch_->order.share(order_rank(), step_);
  if (share.count == 0) return number_;
  return buffer_of(share.first + share.count - 1, number_) + 1;
}

Delivery DrawPipeline::take() {
  const EpochOrder& order = epoch_->order;
  const Share share = order.share(order_rank(), step_);
  const std::uint64_t end = share.first + share.count;
  Delivery delivery{.samples = {}, .epoch = order.epoch(), .from = number_, .copies = {}};
  delivery.samples.reserve(share.count);
  for (std::uint64_t draw = share.first; draw < end;) {
    const std::uint64_t number = buffer_of(draw, number_);
    begin_buffer(number, delivery);
    const auto buffer = feed_->at(number);
    const std::uint64_t buffer_end = buffer->first + buffer->count;
    for (; draw < std::min(end, buffer_end); ++draw) {
      delivery.samples.push_back(sample_at(number, *buffer, draw));
      delivery.samples.back().position = draw - share.first;
    }
    // At the end of an epoch nothing is drawn any more from what is left.
    const bool used_up = draw == buffer_end || (draw == end && step_ + 1 == epoch_->end);
    number_ = used_up ? number + 1 : number;
  }
  ++step_;
  return delivery;
}

/// Waits for buffer `number`, after letting go of what would keep it from being loaded.
void DrawPipeline::begin_buffer(std::uint64_t number, Delivery& delivery) {
  if (delivery.samples.empty()) delivery.from = number;
  if (number >= delivery.from + static_cast<std::uint64_t>(options_.buffers)) {
    copy_out(delivery);
    delivery.from = number;
  }
  const std::uint64_t from = held_.empty() ? delivery.from : held_.front().from;
  stage_->release(local_rank_, from);
  feed_->forget(from);
  wait_for_data(number);
  for (; counted_ <= number; ++counted_) {
    for (const SampleRun& run : feed_->at(number)->runs) figures_.samples_read += run.count;
  }
}

Sample DrawPipeline::sample_at(std::uint64_t number, const DrawBuffer& buffer,
                               std::uint64_t draw) const {
  Sample sample = sample_of(epoch_->order.draw(order_rank(), draw));
  const Place place = epoch_->order.place(order_rank(), draw);
  const StageEntry& entry = stage_->entry_of(number, place.slot - buffer.first_slot, sample.id);
  sample.key = stage_->key(entry);
  sample.value = stage_->value(entry);
  return sample;
}

}  // namespace forebay
