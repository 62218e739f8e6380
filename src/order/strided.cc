#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "forebay/error.hpp"
#include "forebay/order.hpp"
#include "order/partial_window.hpp"

namespace forebay {
namespace {

// Together they keep every product below 2^63, and positions for as long as anyone will run.
constexpr std::uint64_t kMaxEntries = std::uint64_t{1} << 48;
constexpr std::uint64_t kMaxBatch = std::uint64_t{1} << 32;
constexpr std::uint64_t kMaxCoalesce = std::uint64_t{1} << 24;
constexpr std::uint64_t kMaxWindow = std::uint64_t{1} << 40;
constexpr std::uint64_t kMaxPosition = std::uint64_t{1} << 62;

void require(bool holds, const std::string& happened, const std::string& remedy) {
  if (!holds) throw Error(ErrorKind::usage, happened, remedy);
}

void require_window(int ranks, std::uint64_t batch, std::uint64_t coalesce) {
  require(ranks >= 1, "an order needs at least one rank", "");
  require(batch >= static_cast<std::uint64_t>(ranks),
          fmt::format("a batch of {} cannot be shared by {} ranks", batch, ranks),
          "give --batch at least the number of ranks");
  require(batch <= kMaxBatch, fmt::format("a batch of {} is too large", batch),
          fmt::format("the limit is {}", kMaxBatch));
  require(coalesce >= 1 && coalesce <= kMaxCoalesce,
          fmt::format("cannot coalesce {} iterations", coalesce),
          fmt::format("give --coalesce a value from 1 to {}", kMaxCoalesce));
  require(coalesce <= kMaxWindow / batch,
          fmt::format("{} iterations of {} samples are too large a window", coalesce, batch),
          fmt::format("lower --batch or --coalesce: the limit is {} samples", kMaxWindow));
}

void require_partial(const std::vector<PartialWindow>& partial, std::uint64_t start) {
  std::uint64_t least = 0;
  for (const PartialWindow& window : partial) {
    require_window(window.ranks, window.batch, window.coalesce);
    const bool sound = window.iterations >= 1 && window.iterations < window.coalesce &&
                       window.begin >= least && window.begin <= start &&
                       window.iterations * window.batch <= start - window.begin;
    require(sound,
            fmt::format("no run can have left {} of {} iterations at position {} and go on at {}",
                        window.iterations, window.coalesce, window.begin, start),
            "resume from what Loader::state() returned");
    least = window.begin + window.iterations * window.batch;
  }
}

}  // namespace

StridedOrder::StridedOrder(std::uint64_t entries, int ranks, std::uint64_t batch,
                           std::uint64_t coalesce, std::uint64_t start,
                           std::vector<PartialWindow> partial)
    : entries_(entries),
      ranks_(ranks),
      batch_(batch),
      coalesce_(coalesce),
      start_(start),
      partial_(std::move(partial)) {
  require(entries >= 1, "the data set has no samples", "pack some, or name another data set");
  require(entries <= kMaxEntries, fmt::format("a data set of {} samples is too large", entries),
          fmt::format("the limit is {}", kMaxEntries));
  require_window(ranks, batch, coalesce);
  require(start <= kMaxPosition, fmt::format("position {} is too large", start), "");
  require_partial(partial_, start);
  forget_finished();
}

// A window that has nothing left at `start` or later changes nothing. Maps grow, so where the first
// position goes tells it.
void StridedOrder::forget_finished() {
  std::uint64_t lowest = start_;
  std::vector<PartialWindow> open;
  std::ranges::reverse(partial_);
  for (const PartialWindow& window : partial_) {
    const PartialWindowMap map(window);
    if (map.end() <= lowest) continue;
    lowest = map(lowest);
    partial_end_ = std::max(partial_end_, map.end());
    open.push_back(window);
  }
  partial_ = std::move(open);
}

std::uint64_t StridedOrder::share_begin(int rank) const {
  return share_begin_of(rank, batch_, ranks_);
}

std::uint64_t StridedOrder::share(int rank) const {
  return share_begin(rank + 1) - share_begin(rank);
}

Run StridedOrder::run(int rank, std::uint64_t iteration) const {
  const Run whole = window_run(rank, iteration / coalesce_);
  const std::uint64_t count = share(rank);
  return {whole.first + iteration % coalesce_ * count, count};
}

Run StridedOrder::window_run(int rank, std::uint64_t window) const {
  return {start_ + window * coalesce_ * batch_ + coalesce_ * share_begin(rank),
          coalesce_ * share(rank)};
}

// The last stretch left its window in positions of its own, which stand for those of the one
// before.
std::uint64_t StridedOrder::mapped(std::uint64_t position) const {
  for (const PartialWindow& window : partial_) {
    position = PartialWindowMap(window)(position);
  }
  return position;
}

std::uint64_t StridedOrder::mapped_in_a_row(std::uint64_t position) const {
  std::uint64_t count = UINT64_MAX;
  for (const PartialWindow& window : partial_) {
    const PartialWindowMap map(window);
    count = std::min(count, map.in_a_row(position));
    position = map(position);
  }
  return count;
}

std::uint64_t StridedOrder::iterations(std::uint64_t epochs) const {
  require(epochs <= kMaxPosition / entries_,
          fmt::format("{} epochs of {} samples are too many to count", epochs, entries_),
          fmt::format("the limit is {}", kMaxPosition / entries_));
  std::uint64_t end = epochs * entries_;
  for (std::size_t i = partial_.size(); i > 0; --i) {
    end = PartialWindowMap(partial_[i - 1]).first_from(end);
  }
  if (end <= start_) return 0;
  // Rank 0 owns the front of a window: where that is not needed whole, the others are not needed at
  // all; where it is, it takes all C iterations.
  const std::uint64_t window = coalesce_ * batch_;
  const std::uint64_t turns = ((end - start_) % window + share(0) - 1) / share(0);
  return (end - start_) / window * coalesce_ + std::min(turns, coalesce_);
}

}  // namespace forebay
