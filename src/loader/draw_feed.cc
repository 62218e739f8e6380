#include "loader/draw_feed.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "forebay/error.hpp"

namespace forebay {
namespace {

/// Throws when they are more than `most` samples.
std::vector<SampleRun> runs_of(const std::vector<Run>& loads, std::uint64_t most) {
  std::vector<SampleRun> runs;
  std::uint64_t slot = 0;
  for (const Run& load : loads) {
    runs.push_back({.sample = load.first, .count = load.count, .entry = slot});
    slot += load.count;
  }
  if (slot > most) {
    throw Error(ErrorKind::usage,
                fmt::format("a buffer of {} samples is larger than the {} expected", slot, most),
                "this is a fault of Forebay: please report it");
  }
  std::ranges::sort(runs, {}, &SampleRun::sample);
  return runs;
}

}  // namespace

DrawFeed::DrawFeed(RunEpochs epochs, int rank, std::uint64_t most_samples)
    : epochs_(std::move(epochs)), rank_(rank), most_samples_(most_samples) {}

std::shared_ptr<const DrawBuffer> DrawFeed::at(std::uint64_t number) {
  const std::lock_guard lock(mutex_);
  while (number - base_ >= buffers_.size() && !ended_) extend();
  return number - base_ < buffers_.size() ? buffers_[number - base_] : nullptr;
}

void DrawFeed::forget(std::uint64_t number) {
  const std::lock_guard lock(mutex_);
  for (; base_ < number && !buffers_.empty(); ++base_) buffers_.pop_front();
}

void DrawFeed::extend() {
  for (;;) {
    auto buffer = next_of_epoch();
    if (!buffer) {
      ended_ = !begin_epoch();
      if (ended_) return;
      continue;
    }
    last_ = std::move(buffer);
    if (last_->count == 0) continue;
    buffers_.push_back(
        std::make_shared<DrawBuffer>(DrawBuffer{.epoch = epoch_->order.epoch(),
                                                .first = last_->first,
                                                .count = last_->count,
                                                .runs = runs_of(last_->loads, most_samples_)}));
    return;
  }
}

std::optional<Buffer> DrawFeed::next_of_epoch() {
  if (!epoch_) return std::nullopt;
  const EpochOrder& order = epoch_->order;
  auto buffer = last_ ? order.next_buffer(rank_, *last_) : order.first_buffer(rank_, epoch_->begin);
  if (buffer && buffer->first < wanted_draws_) return buffer;
  return std::nullopt;
}

bool DrawFeed::begin_epoch() {
  // Who gets nothing of a whole epoch gets nothing of any other.
  const bool whole = epoch_ && epoch_->before.empty() && epoch_->begin == 0;
  if (whole && epoch_->order.draws(rank_) == 0) return false;
  last_.reset();
  epoch_ = epochs_.next();
  if (!epoch_) return false;
  const EpochOrder& order = epoch_->order;
  wanted_draws_ =
      epoch_->end < order.steps() ? order.share(rank_, epoch_->end).first : order.draws(rank_);
  return true;
}

}  // namespace forebay
