#include "loader/load_list.hpp"

#include <algorithm>
#include <utility>

#include "loader/load_runs.hpp"

namespace forebay {
namespace {

/// The last round of which any rank draws something that the run wants. UINT64_MAX: all there are.
std::uint64_t last_wanted_round(const RunEpoch& epoch) {
  std::uint64_t last = 0;
  for (int rank = 0; rank < epoch.order.options().ranks; ++rank) {
    const std::uint64_t draws = wanted_draws(epoch, rank);
    if (draws == 0) continue;
    const Buffer buffer = epoch.order.buffer(rank, draws - 1);
    if (!buffer.shared) return UINT64_MAX;  // these come behind all rounds
    last = std::max(last, buffer.round);
  }
  return last;
}

}  // namespace

std::uint64_t wanted_draws(const RunEpoch& epoch, int rank) {
  const EpochOrder& order = epoch.order;
  return epoch.end < order.steps() ? order.share(rank, epoch.end).first : order.draws(rank);
}

LoadList::LoadList(RunEpochs epochs, int rank, std::uint64_t window_samples)
    : walk_(Walk{.epochs = std::move(epochs), .rank = rank, .epoch = {}, .buffer = {}}),
      window_samples_(window_samples) {}

LoadList::LoadList(Run held, std::uint64_t window_samples) : window_samples_(window_samples) {
  Load load{.epoch = {}, .shared = true};
  if (held.count > 0) load.runs.push_back(held);
  add(std::move(load));
  ended_ = no_more_windows_ = true;
}

std::shared_ptr<const Load> LoadList::at(std::uint64_t number) {
  const std::lock_guard lock(mutex_);
  while (number - base_ >= loads_.size() && !ended_) extend();
  return number - base_ < loads_.size() ? loads_[number - base_] : nullptr;
}

void LoadList::forget(std::uint64_t number) {
  const std::lock_guard lock(mutex_);
  for (; base_ < number && !loads_.empty(); ++base_) loads_.pop_front();
}

Run LoadList::window(const Load& load, std::uint64_t window) const {
  const std::uint64_t first = (window - load.begin) * window_samples_;
  return {first, std::min(window_samples_, load.samples - first)};
}

void LoadList::add(Load load) {
  load.samples = samples_in(load.runs);
  load.begin = windows_;
  windows_ += (load.samples + window_samples_ - 1) / window_samples_;
  load.end = windows_;
  loads_.push_back(std::make_shared<const Load>(std::move(load)));
}

void LoadList::extend() {
  Walk& walk = *walk_;
  if (!walk.epoch && !begin_epoch(walk)) {
    ended_ = no_more_windows_ = true;
    return;
  }
  if (auto buffer = next_buffer(walk)) {
    const std::uint64_t first = std::max(buffer->first, walk.begin_draw);
    const std::uint64_t end = std::min(buffer->first + buffer->count, walk.end_draw);
    add({.epoch = walk.epoch,
         .shared = buffer->shared,
         .first = first,
         .count = end - std::min(first, end),
         .runs = buffer->loads});
    walk.buffer = std::move(buffer);
    return;
  }
  add({.epoch = walk.epoch, .last = true});
  // Who loads nothing in a whole epoch loads nothing in any other.
  const RunEpoch& epoch = *walk.epoch;
  const bool whole = epoch.before.empty() && epoch.begin == 0 && epoch.end == epoch.order.steps();
  if (whole && windows_ == walk.windows_before) no_more_windows_ = true;
  walk.epoch.reset();
}

bool LoadList::begin_epoch(Walk& walk) const {
  auto epoch = walk.epochs.next();
  if (!epoch) return false;
  walk.epoch = std::make_shared<const RunEpoch>(std::move(*epoch));
  walk.buffer.reset();
  walk.begin_draw = walk.epoch->order.share(walk.rank, walk.epoch->begin).first;
  walk.end_draw = wanted_draws(*walk.epoch, walk.rank);
  walk.last_round = last_wanted_round(*walk.epoch);
  walk.windows_before = windows_;
  return true;
}

std::optional<Buffer> LoadList::next_buffer(Walk& walk) const {
  const EpochOrder& order = walk.epoch->order;
  auto next = walk.buffer ? order.next_buffer(walk.rank, *walk.buffer)
                          : order.first_buffer(walk.rank, walk.epoch->begin);
  if (!next) return next;
  const bool wanted = next->shared ? next->round <= walk.last_round : next->first < walk.end_draw;
  return wanted ? next : std::nullopt;
}

std::shared_ptr<const Load> LoadList::load_with(std::uint64_t window) {
  while (windows_ <= window && !no_more_windows_) extend();
  const auto found = std::ranges::find_if(
      loads_, [window](const auto& load) { return window >= load->begin && window < load->end; });
  return found == loads_.end() ? nullptr : *found;
}

std::uint64_t LoadList::iterations(std::uint64_t window) {
  const std::lock_guard lock(mutex_);
  return load_with(window) ? 1 : 0;
}

std::vector<SampleRun> LoadList::runs(const WindowPart& part) {
  const std::lock_guard lock(mutex_);
  const auto load = load_with(part.window);
  const Run samples = window(*load, part.window);
  return runs_of(load->runs, samples.first, samples.count);
}

}  // namespace forebay
