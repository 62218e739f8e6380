#include "loader/wanted_draws.hpp"

#include <algorithm>

#include "order/deal.hpp"

namespace forebay {
namespace {

// Enough for the reads from other nodes to go in batches.
constexpr std::uint64_t kDrawsAtOnce = 512;

}  // namespace

Run held_by(int rank, std::uint64_t entries, int ranks) {
  const std::uint64_t begin = share_begin_of(rank, entries, ranks);
  return {begin, share_begin_of(rank + 1, entries, ranks) - begin};
}

std::optional<WantedBatch> HeldDraws::next() {
  while (!epoch_ || draw_ == end_) {
    epoch_ = epochs_.next();
    if (!epoch_) return std::nullopt;
    draw_ = epoch_->order.share(rank_, epoch_->begin).first;
    end_ = wanted_draws(*epoch_, rank_);
    // Who draws nothing in a whole epoch draws nothing in any other.
    const bool whole = epoch_->before.empty() && epoch_->begin == 0;
    if (whole && epoch_->order.draws(rank_) == 0) return std::nullopt;
  }
  const OrderOptions& options = epoch_->order.options();
  WantedBatch batch;
  for (; draw_ < end_ && batch.wanted.size() < kDrawsAtOnce; ++draw_) {
    const std::uint64_t sample = epoch_->order.draw(rank_, draw_).sample;
    const int owner = rank_with(sample, options.entries, options.ranks);
    batch.wanted.push_back({.owner = owner,
                            .index = sample - share_begin_of(owner, options.entries, options.ranks),
                            .sample = sample});
  }
  return batch;
}

std::optional<WantedBatch> LoadedDraws::next() {
  if (!load_) {
    load_ = loads_->next();
    done_ = 0;
    if (!load_) return std::nullopt;
  }
  WantedBatch batch{.generation = load_->generation, .wanted = {}};
  const std::uint64_t count = load_->load ? load_->load->count : 0;
  for (; done_ < count && batch.wanted.size() < kDrawsAtOnce; ++done_) {
    const EpochOrder& order = load_->load->epoch->order;
    const std::uint64_t draw = load_->load->first + done_;
    const Place place = order.place(rank_, draw);
    batch.wanted.push_back(
        {.owner = place.rank, .index = place.slot, .sample = order.draw(rank_, draw).sample});
  }
  batch.last = done_ == count;
  if (batch.last) load_.reset();
  return batch;
}

}  // namespace forebay
