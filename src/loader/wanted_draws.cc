#include "loader/wanted_draws.hpp"

#include <algorithm>
#include <array>

#include "order/dealt_epoch.hpp"

namespace forebay {
namespace {

// Enough for the reads from other nodes to go in batches.
constexpr std::uint64_t kDrawsAtOnce = 512;

/// Draws from `first` on, below `end`; where they are is not told.
std::vector<Wanted> draw_some(const EpochOrder& order, int rank, std::uint64_t first,
                              std::uint64_t end) {
  std::array<Draw, kDrawsAtOnce> memory;
  const auto draws = std::span(memory).first(std::min(end - first, kDrawsAtOnce));
  order.draws(rank, first, draws);
  std::vector<Wanted> wanted;
  wanted.reserve(draws.size());
  for (const Draw& draw : draws) {
    wanted.push_back(
        {.sample = draw.sample, .draw = first++, .position = draw.position, .repeat = draw.repeat});
  }
  return wanted;
}

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
  WantedBatch batch{.wanted = draw_some(epoch_->order, rank_, draw_, end_)};
  for (Wanted& wanted : batch.wanted) {
    wanted.owner = rank_with(wanted.sample, options.entries, options.ranks);
    wanted.index = wanted.sample - share_begin_of(wanted.owner, options.entries, options.ranks);
  }
  draw_ += batch.wanted.size();
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
  if (done_ < count) {
    const Load& load = *load_->load;
    const EpochOrder& order = load.epoch->order;
    batch.wanted = draw_some(order, rank_, load.first + done_, load.first + count);
    for (Wanted& wanted : batch.wanted) {
      const Place place = order.place(rank_, wanted.draw);
      wanted.owner = place.rank;
      wanted.index = place.slot;
    }
    done_ += batch.wanted.size();
  }
  batch.last = done_ == count;
  if (batch.last) load_.reset();
  return batch;
}

}  // namespace forebay
