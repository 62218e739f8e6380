#include "loader/draw_list.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "forebay/error.hpp"
#include "loader/load_runs.hpp"
#include "order/most_loaded.hpp"

namespace forebay {
namespace {

void require_room(std::uint64_t samples, std::uint64_t most) {
  if (samples <= most) return;
  throw Error(ErrorKind::usage,
              fmt::format("a buffer of {} samples is larger than the {} expected", samples, most),
              "this is a fault of Forebay: please report it");
}

}  // namespace

DrawList::DrawList(RunEpochs epochs, int rank, std::uint64_t most_samples, Begin begin)
    : epochs_(std::move(epochs)), rank_(rank), most_samples_(most_samples), begin_(begin) {}

std::shared_ptr<const DrawBuffer> DrawList::at(std::uint64_t number) {
  const std::lock_guard lock(mutex_);
  while (number - base_ >= buffers_.size() && !ended_) extend();
  return number - base_ < buffers_.size() ? buffers_[number - base_] : nullptr;
}

void DrawList::forget(std::uint64_t number) {
  const std::lock_guard lock(mutex_);
  for (; base_ < number && !buffers_.empty(); ++base_) buffers_.pop_front();
}

void DrawList::extend() {
  for (;;) {
    auto buffer = next_of_epoch();
    if (!buffer) {
      ended_ = !begin_epoch();
      if (ended_) return;
      continue;
    }
    last_ = std::move(buffer);
    if (last_->count == 0) continue;
    if (begin_ == Begin::small && loads_as_drawn(epoch_->order.options())) {
      add_pieces(*last_);
    } else {
      add(*last_, {last_->first, last_->count}, {0, samples_in(last_->loads)});
    }
    begin_ = Begin::whole;
    return;
  }
}

/// The `draws` that `loads` of the buffer serve.
void DrawList::add(const Buffer& buffer, const Run& draws, const Run& loads) {
  require_room(loads.count, most_samples_);
  buffers_.push_back(std::make_shared<DrawBuffer>(
      DrawBuffer{.epoch = epoch_->order.epoch(),
                 .first = draws.first,
                 .count = draws.count,
                 .first_slot = loads.first,
                 .runs = runs_of(buffer.loads, loads.first, loads.count)}));
}

/// One iteration, another one, two, four ... of what lies between the run's first and last one.
void DrawList::add_pieces(const Buffer& buffer) {
  const Share share = epoch_->order.share(rank_, epoch_->begin);
  const std::uint64_t end = std::min(buffer.first + buffer.count, wanted_draws_);
  std::uint64_t length = std::max<std::uint64_t>(share.count, 1);
  for (std::uint64_t draw = std::max(buffer.first, share.first), before = draw; draw < end;) {
    const std::uint64_t count = std::min(length, end - draw);
    add(buffer, {draw, count}, {draw - buffer.first, count});
    draw += count;
    length = draw - before;
  }
}

std::optional<Buffer> DrawList::next_of_epoch() {
  if (!epoch_) return std::nullopt;
  const EpochOrder& order = epoch_->order;
  auto buffer = last_ ? order.next_buffer(rank_, *last_) : order.first_buffer(rank_, epoch_->begin);
  if (buffer && buffer->first < wanted_draws_) return buffer;
  return std::nullopt;
}

bool DrawList::begin_epoch() {
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
