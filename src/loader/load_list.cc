#include "loader/load_list.hpp"

#include <algorithm>
#include <utility>

namespace forebay {
LoadList::LoadList(RunEpochs epochs, int rank, std::uint64_t window_samples)
    : walk_(BufferWalk(std::move(epochs), rank)), window_samples_(window_samples) {}

LoadList::LoadList(Run held, std::uint64_t window_samples) : window_samples_(window_samples) {
  Load load{.epoch = {}, .shared = true};
  if (held.count > 0) load.runs.push_back(held);
  add(std::move(load));
  ended_ = no_more_windows_ = true;
}

std::shared_ptr<const Load> LoadList::at(std::uint64_t number) {
  const std::lock_guard lock(mutex_);
  while (number >= loads_.end() && !ended_) extend();
  return loads_.at(number);
}

void LoadList::forget(std::uint64_t number) {
  const std::lock_guard lock(mutex_);
  loads_.forget(number);
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
  loads_.push(std::move(load));
}

void LoadList::extend() {
  if (!in_epoch_) {
    in_epoch_ = walk_->begin_epoch();
    windows_before_ = windows_;
    if (!in_epoch_) {
      ended_ = no_more_windows_ = true;
      return;
    }
  }
  const std::shared_ptr<const RunEpoch>& epoch = walk_->epoch();
  if (auto buffer = walk_->next()) {
    const std::uint64_t first = std::max(buffer->first, walk_->begin_draw());
    const std::uint64_t end = std::min(buffer->first + buffer->count, walk_->end_draw());
    return add({.epoch = epoch,
                .shared = buffer->shared,
                .first = first,
                .count = end - std::min(first, end),
                .runs = std::move(buffer->loads)});
  }
  add({.epoch = epoch, .last = true});
  const bool whole = walk_->is_whole() && epoch->end == epoch->order.steps();
  if (whole && windows_ == windows_before_) no_more_windows_ = true;
  in_epoch_ = false;
}

std::shared_ptr<const Load> LoadList::load_with(std::uint64_t window) {
  while (windows_ <= window && !no_more_windows_) extend();
  const auto found = std::ranges::find_if(loads_.all(), [window](const auto& load) {
    return window >= load->begin && window < load->end;
  });
  return found == loads_.all().end() ? nullptr : *found;
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
