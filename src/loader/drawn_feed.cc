// Orders that are new in every epoch. Each rank draws from one buffer of the order after the other,
// as the asynchronous I/O strategy does (Lee et al., paper 003, III-B): while the consumer draws
// samples from one buffer in the order of the epoch, the reading thread loads the next.
//
//   stage of the rank   |buffer 4: on its way |buffer 3: drawn from|
//   batch               samples of buffer 3, in place; where it is used up, of buffer 4 too
//
// A batch that spans more buffers than there are waits for them with copies of its first samples.
//
// Where roots read for the ranks of a node (LMDBIO's, for orders that it does not have), a window
// of the stage has buffers of all of them (NodeList), and enough windows for any batch.
#include <fmt/format.h>

#include <algorithm>

#include "comm/values.hpp"
#include "loader/draw_list.hpp"
#include "loader/epoch_run.hpp"
#include "loader/feed.hpp"
#include "loader/node_list.hpp"
#include "order/order_cost.hpp"

namespace forebay {
namespace {

class DrawnFeed final : public Feed {
 public:
  DrawnFeed(const FeedSite& site, EpochPlan plan, std::shared_ptr<DrawBuffers> list)
      : site_(site),
        rank_(site.opened.team.order_rank),
        run_(std::move(plan), rank_),
        list_(std::move(list)) {}

  std::optional<BatchPass> next() override { return run_.next(); }
  Delivery take(const BatchPass& pass) override;
  std::optional<std::uint64_t> end_of_next() const override;
  void let_go(std::uint64_t from) override {
    site_.stage->release(site_.opened.team.group->rank(), from);
  }
  RunState state() const override { return run_.state(); }
  void add_to(LoaderStatistics& all) const override;

 private:
  std::uint64_t buffer_of(std::uint64_t draw, std::uint64_t from) const;
  std::uint64_t window_of(std::uint64_t number) const;
  void begin_buffer(std::uint64_t number, Delivery& delivery);
  void wait_for_others(const Delivery& delivery);
  Sample sample_at(const DrawBuffer& buffer, std::uint64_t draw, const Draw& drawn) const;

  FeedSite site_;
  int rank_;
  EpochRun run_;
  std::shared_ptr<DrawBuffers> list_;
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

/// From which window on buffers from `number` on are; behind all of them where there are none.
std::uint64_t DrawnFeed::window_of(std::uint64_t number) const {
  constexpr std::uint64_t kNone = std::uint64_t{1} << 62;
  const auto buffer = list_->at(number);
  return buffer ? buffer->window : kNone;
}

/// Where each rank reads for itself, nothing is needed without samples, that is, nothing but what
/// was drawn from already.
std::optional<std::uint64_t> DrawnFeed::end_of_next() const {
  if (const auto end = list_->windows_for(run_.order().epoch(), run_.step())) return end;
  const Share share = run_.share();
  if (share.count == 0) return number_;
  return window_of(buffer_of(share.first + share.count - 1, number_)) + 1;
}

Delivery DrawnFeed::take(const BatchPass& pass) {
  const Share share = run_.share();
  const std::uint64_t end = share.first + share.count;
  Delivery delivery{.samples = {}, .from = window_of(number_), .copies = {}};
  delivery.samples.reserve(share.count);
  std::vector<Draw> drawn(share.count);
  run_.order().draws(rank_, share.first, drawn);
  for (std::uint64_t draw = share.first; draw < end;) {
    const std::uint64_t number = buffer_of(draw, number_);
    begin_buffer(number, delivery);
    const auto buffer = list_->at(number);
    const std::uint64_t buffer_end = buffer->first + buffer->count;
    for (; draw < std::min(end, buffer_end); ++draw) {
      delivery.samples.push_back(sample_at(*buffer, draw, drawn[draw - share.first]));
      delivery.samples.back().position = draw - share.first;
    }
    // At the end of an epoch nothing is drawn any more from what is left.
    const bool used_up = draw == buffer_end || (draw == end && run_.ends_epoch());
    number_ = used_up ? number + 1 : number;
  }
  wait_for_others(delivery);
  run_.advance(delivery, pass);
  delivery.next_from = window_of(number_);
  return delivery;
}

/// Waits for buffer `number`, after letting go of what would keep it from being loaded.
void DrawnFeed::begin_buffer(std::uint64_t number, Delivery& delivery) {
  const std::uint64_t window = window_of(number);
  if (delivery.samples.empty()) delivery.from = window;
  if (window >= delivery.from + static_cast<std::uint64_t>(site_.stage->shape().buffers)) {
    copy_out(delivery);
    delivery.from = window;
  }
  let_go(site_.held.from_or(delivery.from));
  site_.data.wait(window, run_.iteration());
  for (; counted_ <= number; ++counted_) samples_read_ += list_->at(counted_)->samples;
  list_->forget(number, window);
}

/// A root that has run out of samples still reads for the others: it does not end before all is
/// there.
void DrawnFeed::wait_for_others(const Delivery& delivery) {
  const auto end = list_->windows_for(run_.order().epoch(), run_.step());
  if (!end) return;
  let_go(site_.held.from_or(delivery.from));
  site_.data.wait(*end - 1, run_.iteration());
  list_->forget(number_, *end - 1);
}

Sample DrawnFeed::sample_at(const DrawBuffer& buffer, std::uint64_t draw, const Draw& drawn) const {
  Sample sample = run_.sample_of(drawn);
  const Place place = run_.order().place(rank_, draw);
  const StageEntry& entry = site_.stage->entry_of(
      buffer.window, buffer.entry + (place.slot - buffer.first_slot), sample.id);
  sample.key = site_.stage->key(entry);
  sample.value = site_.stage->value(entry);
  return sample;
}

void DrawnFeed::add_to(LoaderStatistics& all) const {
  run_.add_to(all);
  all.samples_read = samples_read_;
}

// The plan ---------------------------------------------------------------------------------------

// Batches that are held keep buffers, decoded or not: several may be of as many pieces.
DrawBuffers::Begin begin_of(const Opened& opened) {
  return opened.options.one_at_a_time ? DrawBuffers::Begin::small : DrawBuffers::Begin::whole;
}

/// What a rank draws from, and the windows that this takes.
struct DrawnPlan {
  std::shared_ptr<DrawBuffers> list;
  std::uint64_t entries = 0;  ///< of a window, of all ranks that share it
  int at_once = 1;            ///< windows, at least
  std::uint64_t turns = 0;    ///< of a root
};

DrawnPlan read_alone(const Opened& opened, const EpochPlan& epochs) {
  const std::uint64_t most = most_loaded(epochs.order, !opened.options.done.empty());
  return {.list = std::make_shared<DrawList>(epochs.epochs, opened.team.order_rank, most,
                                             begin_of(opened)),
          .entries = most};
}

/// Of a run without an end, more than anybody counts.
std::uint64_t windows_of_run(const Opened& opened, const EpochPlan& epochs,
                             const DrawWindows& windows) {
  constexpr std::uint64_t kEndless = std::uint64_t{1} << 32;
  const LoaderOptions& options = opened.options;
  if (options.iterations > 0) return windows.count(options.iterations - options.first_iteration);
  if (options.epochs == 0) return kEndless;
  return windows.count(epochs.epoch_iterations) * (options.epochs - options.first_epoch);
}

DrawnPlan read_together(const Opened& opened, const EpochPlan& epochs) {
  const Team& team = opened.team;
  const DrawWindows windows(epochs.order, !opened.options.done.empty());
  const RankGroup& group = team.own_group();
  NodeShare share{.ranks = group.ranks,
                  .own = static_cast<std::size_t>(team.group->rank()),
                  .root = team.root,
                  .roots = static_cast<int>(group.roots.size())};
  const std::uint64_t entries = share.ranks.size() * windows.most_loaded();
  return {.list = std::make_shared<NodeList>(epochs.order, epochs.epochs, windows, std::move(share),
                                             begin_of(opened)),
          .entries = entries,
          .at_once = windows.at_once(),
          .turns = windows_of_run(opened, epochs, windows)};
}

}  // namespace

FeedPlan plan_drawn(const Opened& opened) {
  const LoaderOptions& options = opened.options;
  const bool alone = opened.source.setup.alone;
  EpochPlan epochs = plan_epochs(opened);
  DrawnPlan drawn;
  collectively(*opened.team.world,
               [&] { drawn = alone ? read_alone(opened, epochs) : read_together(opened, epochs); });
  FeedPlan plan{.stage = {.ranks = opened.team.group->size(),
                          .roots = opened.source.setup.roots,
                          .buffers = std::max(options.buffers, drawn.at_once),
                          .iterations = 1,
                          .entries = drawn.entries,
                          .data_bytes = opened.buffer_bytes()},
                .list = drawn.list,
                .in_place = true,
                .map = {},
                .turns = drawn.turns,
                .text = epochs.begin.identity,
                .epoch_iterations = epochs.epoch_iterations,
                .epochs_done = epochs.begin.epoch,
                .start = {}};
  plan.start = [epochs = std::move(epochs), list = drawn.list](const FeedSite& site) {
    return std::make_unique<DrawnFeed>(site, epochs, list);
  };
  return plan;
}

}  // namespace forebay
