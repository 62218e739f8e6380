#include "forebay/epoch_order.hpp"

#include <algorithm>
#include <utility>

#include "core/mix.hpp"
#include "forebay/sample_seed.hpp"
#include "order/dealt_epoch.hpp"
#include "order/epoch_list.hpp"
#include "order/order_limits.hpp"

namespace forebay {
namespace {

/// The options of those who begin the epoch.
OrderOptions begun_by(OrderOptions options, const std::vector<Segment>& done) {
  if (!done.empty()) {
    options.ranks = done.front().ranks;
    options.batch = done.front().batch;
  }
  return options;
}

const OrderOptions& checked(const OrderOptions& options, const std::vector<Segment>& done) {
  options.validate();
  require_sharing_limits(done);
  if (!done.empty()) begun_by(options, done).validate();
  return options;
}

}  // namespace

class EpochOrder::Parts {
 public:
  Parts(OrderOptions with_options, std::uint64_t of_epoch, const std::vector<Segment>& done)
      : options(std::move(with_options)),
        epoch(of_epoch),
        list(make_epoch_list(begun_by(checked(options, done), done), epoch)),
        dealt(first_deal(done), options.order_end(), done, options.ranks, options.batch) {}

  OrderOptions options;
  std::uint64_t epoch;
  std::unique_ptr<const EpochList> list;
  DealtEpoch dealt;

 private:
  Deal first_deal(const std::vector<Segment>& done) const {
    const OrderOptions first = begun_by(options, done);
    return list->deal(first.ranks, first.batch);
  }
};

EpochOrder::EpochOrder(OrderOptions options, std::uint64_t epoch, const std::vector<Segment>& done)
    : parts_(std::make_shared<const Parts>(std::move(options), epoch, done)) {}

const OrderOptions& EpochOrder::options() const { return parts_->options; }
std::uint64_t EpochOrder::epoch() const { return parts_->epoch; }
std::uint64_t EpochOrder::size() const { return parts_->list->size(); }
std::uint64_t EpochOrder::steps() const { return parts_->dealt.steps(); }
std::uint64_t EpochOrder::first_iteration() const { return parts_->dealt.first_iteration(); }
std::uint64_t EpochOrder::dropped() const { return parts_->dealt.dropped(); }
std::uint64_t EpochOrder::repeated() const { return parts_->dealt.repeated(); }
bool EpochOrder::resident() const { return parts_->list->resident(); }

std::uint64_t EpochOrder::draws(int rank) const { return parts_->dealt.draws(rank); }

Share EpochOrder::share(int rank, std::uint64_t iteration) const {
  const std::uint64_t most = parts_->dealt.deal().share(rank);
  const std::uint64_t draws = parts_->dealt.draws(rank), own = parts_->dealt.own(rank);
  const std::uint64_t first = std::min(iteration * most, draws);
  return {.first = first,
          .count = std::min(most, draws - first),
          .valid = std::min(most, own - std::min(first, own))};
}

std::uint64_t EpochOrder::pass(std::uint64_t iteration) const {
  const std::uint64_t own = parts_->dealt.own(0);
  if (own == 0) return 0;
  const std::uint64_t first = std::min(share(0, iteration).first, own - 1);
  return parts_->list->pass_of(parts_->dealt.position(0, first));
}

Draw EpochOrder::draw(int rank, std::uint64_t draw) const {
  const std::uint64_t position = parts_->dealt.position(rank, draw);
  return {.sample = parts_->list->sample(position),
          .position = position,
          .repeat = draw >= parts_->dealt.own(rank)};
}

void EpochOrder::draws(int rank, std::uint64_t first, std::span<Draw> to) const {
  parts_->list->draws(parts_->dealt, rank, first, to);
}

std::optional<Buffer> EpochOrder::first_buffer(int rank, std::uint64_t iteration) const {
  return parts_->list->first_buffer(parts_->dealt, rank, iteration);
}

std::optional<Buffer> EpochOrder::next_buffer(int rank, const Buffer& buffer) const {
  return parts_->list->next_buffer(parts_->dealt, rank, buffer);
}

Buffer EpochOrder::buffer(int rank, std::uint64_t draw) const {
  return parts_->list->buffer(parts_->dealt, rank, draw);
}

Place EpochOrder::place(int rank, std::uint64_t draw) const {
  return parts_->list->place(parts_->dealt, rank, draw);
}

std::uint64_t sample_seed(std::uint64_t run_seed, std::uint64_t epoch, std::uint64_t sample) {
  constexpr std::uint64_t kPurpose = 1;  // the others are OrderKey
  return mix_key({kPurpose, run_seed, epoch, sample});
}

OrderProgress advance(const OrderOptions& options, OrderProgress from, std::uint64_t iterations) {
  for (;;) {
    const EpochOrder order(options, from.epoch, from.done);
    const std::uint64_t left = order.steps() - order.first_iteration();
    if (iterations < left) break;
    iterations -= left;
    from = {.epoch = from.epoch + 1, .done = {}};
    if (iterations == 0) return from;
  }
  if (iterations == 0) return from;
  if (!from.done.empty() && from.done.back().ranks == options.ranks &&
      from.done.back().batch == options.batch) {
    from.done.back().iterations += iterations;
  } else {
    from.done.push_back({.ranks = options.ranks, .batch = options.batch, .iterations = iterations});
  }
  return from;
}

}  // namespace forebay
