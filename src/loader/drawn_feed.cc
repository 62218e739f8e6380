// Orders that are new in every epoch. Each rank reads by itself, one buffer of the order after the
// other, as the asynchronous I/O strategy does (Lee et al., paper 003, III-B): while the consumer
// draws samples from one buffer in the order of the epoch, the reading thread loads the next.
//
//   stage of the rank   |buffer 4: on its way |buffer 3: drawn from|
//   batch               samples of buffer 3, in place; where it is used up, of buffer 4 too
//
// A batch that spans more buffers than there are waits for them with copies of its first samples.
#include <fmt/format.h>

#include <algorithm>

#include "comm/values.hpp"
#include "loader/draw_list.hpp"
#include "loader/epoch_run.hpp"
#include "loader/feed.hpp"
#include "order/order_cost.hpp"

namespace forebay {
namespace {

class DrawnFeed final : public Feed {
 public:
  DrawnFeed(const FeedSite& site, EpochPlan plan, std::shared_ptr<DrawList> list)
      : site_(site),
        rank_(site.opened.team.order_rank),
        run_(std::move(plan), rank_),
        list_(std::move(list)) {}

  std::optional<BatchPass> next() override { return run_.next(); }
  Delivery take(const BatchPass& pass) override;
  std::optional<std::uint64_t> end_of_next() const override;
  void let_go(std::uint64_t from) override { site_.stage->release(0, from); }
  RunState state() const override { return run_.state(); }
  void add_to(LoaderStatistics& all) const override;

 private:
  std::uint64_t buffer_of(std::uint64_t draw, std::uint64_t from) const;
  void begin_buffer(std::uint64_t number, Delivery& delivery);
  Sample sample_at(std::uint64_t number, const DrawBuffer& buffer, std::uint64_t draw,
                   const Draw& drawn) const;

  FeedSite site_;
  int rank_;
  EpochRun run_;
  std::shared_ptr<DrawList> list_;
  std::uint64_t counted_ = 0;  ///< buffers whose samples are counted
  std::uint64_t number_ = 0;   ///< of the buffer that the next draw is in, or a later one
  std::uint64_t samples_read_ = 0;
};

/// The number of the buffer that serves `draw`, `from` or a later one.
std::uint64_t DrawnFeed::buffer_of(std::uint64_t draw, std::uint64_t from) const {
  for (std::uint64_t number = from;; ++number) {
    const auto buffer = list_->at(number);
    if (buffer && buffer->serves(run_.order().epoch(), draw)) return number;
    if (buffer) continue;
    throw Error(ErrorKind::communication, fmt::format("no buffer holds draw {}", draw),
                "this is a fault of Forebay: please report it");
  }
}

/// Without samples nothing is needed, that is, nothing but what was drawn from already.
std::optional<std::uint64_t> DrawnFeed::end_of_next() const {
  const Share share = run_.share();
  if (share.count == 0) return number_;
  return buffer_of(share.first + share.count - 1, number_) + 1;
}

Delivery DrawnFeed::take(const BatchPass& pass) {
  const Share share = run_.share();
  const std::uint64_t end = share.first + share.count;
  Delivery delivery{.samples = {}, .from = number_, .copies = {}};
  delivery.samples.reserve(share.count);
  std::vector<Draw> drawn(share.count);
  run_.order().draws(rank_, share.first, drawn);
  for (std::uint64_t draw = share.first; draw < end;) {
    const std::uint64_t number = buffer_of(draw, number_);
    begin_buffer(number, delivery);
    const auto buffer = list_->at(number);
    const std::uint64_t buffer_end = buffer->first + buffer->count;
    for (; draw < std::min(end, buffer_end); ++draw) {
      delivery.samples.push_back(sample_at(number, *buffer, draw, drawn[draw - share.first]));
      delivery.samples.back().position = draw - share.first;
    }
    // At the end of an epoch nothing is drawn any more from what is left.
    const bool used_up = draw == buffer_end || (draw == end && run_.ends_epoch());
    number_ = used_up ? number + 1 : number;
  }
  run_.advance(delivery, pass);
  delivery.next_from = number_;
  return delivery;
}

/// Waits for buffer `number`, after letting go of what would keep it from being loaded.
void DrawnFeed::begin_buffer(std::uint64_t number, Delivery& delivery) {
  if (delivery.samples.empty()) delivery.from = number;
  if (number >= delivery.from + static_cast<std::uint64_t>(site_.opened.options.buffers)) {
    copy_out(delivery);
    delivery.from = number;
  }
  const std::uint64_t from = site_.held.from_or(delivery.from);
  let_go(from);
  list_->forget(from);
  site_.data.wait(number, run_.iteration());
  for (; counted_ <= number; ++counted_) {
    for (const SampleRun& run : list_->at(number)->runs) samples_read_ += run.count;
  }
}

Sample DrawnFeed::sample_at(std::uint64_t number, const DrawBuffer& buffer, std::uint64_t draw,
                            const Draw& drawn) const {
  Sample sample = run_.sample_of(drawn);
  const Place place = run_.order().place(rank_, draw);
  const StageEntry& entry =
      site_.stage->entry_of(number, place.slot - buffer.first_slot, sample.id);
  sample.key = site_.stage->key(entry);
  sample.value = site_.stage->value(entry);
  return sample;
}

void DrawnFeed::add_to(LoaderStatistics& all) const {
  run_.add_to(all);
  all.samples_read = samples_read_;
}

}  // namespace

FeedPlan plan_drawn(const Opened& opened) {
  const LoaderOptions& options = opened.options;
  EpochPlan epochs = plan_epochs(opened);
  std::uint64_t most_samples = 0;  // of a buffer
  std::shared_ptr<DrawList> list;
  collectively(*opened.team.world, [&] {
    most_samples = most_loaded(epochs.order, !options.done.empty());
    // Batches that are held keep buffers, decoded or not: several may be of as many pieces.
    const auto begin = options.one_at_a_time ? DrawList::Begin::small : DrawList::Begin::whole;
    list = std::make_shared<DrawList>(epochs.epochs, opened.team.order_rank, most_samples, begin);
  });
  FeedPlan plan{.stage = {.ranks = 1,
                          .roots = 1,
                          .buffers = options.buffers,
                          .coalesce = 1,
                          .entries = most_samples,
                          .data_bytes = opened.buffer_bytes()},
                .list = list,
                .in_place = true,
                .map = {},
                .text = epochs.begin.identity,
                .epoch_iterations = epochs.epoch_iterations,
                .epochs_done = epochs.begin.epoch,
                .start = {}};
  plan.start = [epochs = std::move(epochs), list](const FeedSite& site) {
    return std::make_unique<DrawnFeed>(site, epochs, list);
  };
  return plan;
}

}  // namespace forebay
