#include "loader/buffer_walk.hpp"

#include <algorithm>
#include <utility>

namespace forebay {

std::uint64_t wanted_draws(const RunEpoch& epoch, int rank) {
  const EpochOrder& order = epoch.order;
  return epoch.end < order.steps() ? order.share(rank, epoch.end).first : order.draws(rank);
}

std::vector<SampleRun> runs_of(const std::vector<Run>& loads, std::uint64_t first,
                               std::uint64_t count) {
  std::vector<SampleRun> runs;
  std::uint64_t place = 0;
  for (const Run& load : loads) {
    const std::uint64_t begin = std::max(place, first);
    const std::uint64_t end = std::min(place + load.count, first + count);
    if (begin < end) {
      runs.push_back(
          {.sample = load.first + (begin - place), .count = end - begin, .entry = begin - first});
    }
    place += load.count;
    if (place >= first + count) break;
  }
  std::ranges::sort(runs, {}, &SampleRun::sample);
  return runs;
}

std::uint64_t samples_in(const std::vector<Run>& loads) {
  std::uint64_t samples = 0;
  for (const Run& load : loads) samples += load.count;
  return samples;
}

bool BufferWalk::begin_epoch() {
  auto epoch = epochs_.next();
  if (!epoch) return false;
  begin(std::make_shared<const RunEpoch>(std::move(*epoch)));
  return true;
}

void RankBuffers::begin(std::shared_ptr<const RunEpoch> epoch) {
  epoch_ = std::move(epoch);
  buffer_.reset();
  last_round_.reset();
  begin_draw_ = epoch_->order.share(rank_, epoch_->begin).first;
  end_draw_ = wanted_draws(*epoch_, rank_);
}

std::optional<Buffer> RankBuffers::next() {
  const EpochOrder& order = epoch_->order;
  auto next =
      buffer_ ? order.next_buffer(rank_, *buffer_) : order.first_buffer(rank_, epoch_->begin);
  if (!next) return next;
  if (next->shared && !last_round_) last_round_ = last_wanted_round();
  if (next->shared ? next->round > *last_round_ : next->first >= end_draw_) return std::nullopt;
  buffer_ = next;
  return next;
}

/// The last round of which any rank draws something that the run wants. UINT64_MAX: all there are.
std::uint64_t RankBuffers::last_wanted_round() const {
  std::uint64_t last = 0;
  for (int rank = 0; rank < epoch_->order.options().ranks; ++rank) {
    const std::uint64_t draws = wanted_draws(*epoch_, rank);
    if (draws == 0) continue;
    const Buffer buffer = epoch_->order.buffer(rank, draws - 1);
    if (!buffer.shared) return UINT64_MAX;  // these come behind all rounds
    last = std::max(last, buffer.round);
  }
  return last;
}

}  // namespace forebay
