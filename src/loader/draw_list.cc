#include "loader/draw_list.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "forebay/error.hpp"
#include "order/order_cost.hpp"

namespace forebay {

void require_entries(std::uint64_t samples, std::uint64_t most) {
  if (samples <= most) return;
  throw Error(ErrorKind::usage,
              fmt::format("a buffer of {} samples is larger than the {} expected", samples, most),
              "this is a fault of Forebay: please report it");
}

DrawList::DrawList(RunEpochs epochs, int rank, std::uint64_t most_samples, Begin begin)
    : walk_(std::move(epochs), rank), most_samples_(most_samples), begin_(begin) {}

std::shared_ptr<const DrawList::Listed> DrawList::listed(std::uint64_t number) {
  const std::lock_guard lock(mutex_);
  while (number >= buffers_.end() && !ended_) extend();
  return buffers_.at(number);
}

void DrawList::forget(std::uint64_t number, std::uint64_t /*window*/) {
  const std::lock_guard lock(mutex_);
  buffers_.forget(number);
}

void DrawList::extend() {
  auto buffer = walk_.epoch() ? walk_.next() : std::nullopt;
  if (!buffer) {
    const bool gets_nothing =
        walk_.epoch() && walk_.is_whole() && walk_.epoch()->order.draws(walk_.rank()) == 0;
    ended_ = gets_nothing || !walk_.begin_epoch();
    return;
  }
  if (buffer->count == 0) return;
  if (begin_ == Begin::small && loads_as_drawn(walk_.epoch()->order.options())) {
    add_pieces(*buffer);
  } else {
    add(*buffer, {buffer->first, buffer->count}, {0, samples_in(buffer->loads)});
  }
  begin_ = Begin::whole;
}

/// The `draws` that `loads` of the buffer serve.
void DrawList::add(const Buffer& buffer, const Run& draws, const Run& loads) {
  require_entries(loads.count, most_samples_);
  buffers_.push({{.epoch = walk_.epoch()->order.epoch(),
                  .first = draws.first,
                  .count = draws.count,
                  .first_slot = loads.first,
                  .samples = loads.count,
                  .window = buffers_.end()},
                 runs_of(buffer.loads, loads.first, loads.count)});
}

/// One iteration, another one, two, four ... of what lies between the run's first and last one.
void DrawList::add_pieces(const Buffer& buffer) {
  const Share share = walk_.epoch()->order.share(walk_.rank(), walk_.epoch()->begin);
  const std::uint64_t end = std::min(buffer.first + buffer.count, walk_.end_draw());
  std::uint64_t length = std::max<std::uint64_t>(share.count, 1);
  for (std::uint64_t draw = std::max(buffer.first, share.first), before = draw; draw < end;) {
    const std::uint64_t count = std::min(length, end - draw);
    add(buffer, {draw, count}, {draw - buffer.first, count});
    draw += count;
    length = draw - before;
  }
}

}  // namespace forebay
