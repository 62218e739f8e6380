#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "forebay/error.hpp"
#include "forebay/order.hpp"
#include "order/dealt_epoch.hpp"
#include "order/order_limits.hpp"

namespace forebay {
namespace {

// Together with kMostEntries and kLargestBatch they keep every product below 2^63, and positions
// for as long as anyone will run.
constexpr std::uint64_t kMaxCoalesce = std::uint64_t{1} << 24;
constexpr std::uint64_t kMaxWindow = std::uint64_t{1} << 40;
constexpr std::uint64_t kMaxPosition = std::uint64_t{1} << 62;

void require_window(int ranks, std::uint64_t batch, std::uint64_t coalesce) {
  require_usage(ranks >= 1, "an order needs at least one rank", "");
  require_usage(batch >= static_cast<std::uint64_t>(ranks),
                fmt::format("a batch of {} cannot be shared by {} ranks", batch, ranks),
                "give --batch at least the number of ranks");
  require_usage(batch <= kLargestBatch, fmt::format("a batch of {} is too large", batch),
                fmt::format("the limit is {}", kLargestBatch));
  require_usage(coalesce >= 1 && coalesce <= kMaxCoalesce,
                fmt::format("cannot coalesce {} iterations", coalesce),
                fmt::format("give --coalesce a value from 1 to {}", kMaxCoalesce));
  require_usage(coalesce <= kMaxWindow / batch,
                fmt::format("{} iterations of {} samples are too large a window", coalesce, batch),
                fmt::format("lower --batch or --coalesce: the limit is {} samples", kMaxWindow));
}

void require_partial(const std::vector<PartialWindow>& partial, std::uint64_t start) {
  std::uint64_t least = 0;
  for (const PartialWindow& window : partial) {
    require_window(window.ranks, window.batch, window.coalesce);
    const std::uint64_t most = window.coalesce - (window.tail > 0 ? 0 : 1);
    const bool sound = window.tail < window.batch && window.iterations >= 1 &&
                       window.iterations <= most && window.begin >= least &&
                       window.begin <= start &&
                       window.iterations * window.batch <= start - window.begin;
    require_usage(
        sound,
        fmt::format("no run can have left {} of {} iterations at position {} and go on at {}",
                    window.iterations, window.coalesce, window.begin, start),
        "resume from what Loader::state() returned");
    least = window.begin + window.iterations * window.batch;
  }
}

void require_epochs(std::uint64_t epochs, std::uint64_t entries) {
  require_usage(epochs <= kMaxPosition / entries,
                fmt::format("{} epochs of {} samples are too many to count", epochs, entries),
                fmt::format("the limit is {}", kMaxPosition / entries));
}

// What is left of a window that was left unfinished, as a map of positions; see forebay/order.hpp.
//
// The map is defined from begin + r * B on, grows strictly, and reaches every position that was not
// taken. So those below a bound are always the ones before some position.

/// The positions of a sound window. Methods are O(1), or O(log ranks) inside of it.
class PartialWindowMap {
 public:
  explicit PartialWindowMap(const PartialWindow& window)
      : begin_(window.begin),
        taken_(window.iterations),
        whole_{window.batch, window.ranks, window.coalesce, window.tail},
        left_{window.batch, window.ranks, window.coalesce - window.iterations, window.tail} {}

  /// The first position of the map.
  std::uint64_t begin() const { return begin_ + taken_ * whole_.batch; }
  /// From here on positions stand for themselves.
  std::uint64_t end() const { return begin_ + whole_.length(); }
  /// What `position`, from begin() on, stands for.
  std::uint64_t operator()(std::uint64_t position) const {
    if (position < begin() || position >= end()) return position;
    const std::uint64_t index = position - begin();
    // Left before it are the rest of lower ranks' runs; taken before it, all ranks' up to this one.
    return begin_ + index + taken_ * whole_.share_begin(left_.rank_at(index) + 1);
  }
  /// How many positions from `position`, which is one of the map's, on stand for ones in a row.
  std::uint64_t in_a_row(std::uint64_t position) const {
    if (position >= end()) return UINT64_MAX;
    if (position < begin()) return begin() - position;
    const std::uint64_t index = position - begin();
    return left_.begin(left_.rank_at(index) + 1) - index;
  }
  /// The first position that stands for `bound` or more; not above begin() when all do.
  std::uint64_t first_from(std::uint64_t bound) const {
    if (bound <= begin_ || bound >= end()) return bound;
    const std::uint64_t index = bound - begin_;
    const int rank = whole_.rank_at(index);
    const std::uint64_t taken = taken_ * whole_.share(rank);
    const std::uint64_t inside = index - whole_.begin(rank);
    return begin() + left_.begin(rank) + (inside > taken ? inside - taken : 0);
  }

 private:
  std::uint64_t begin_;
  std::uint64_t taken_;  ///< iterations
  RankRuns whole_;
  RankRuns left_;
};

}  // namespace

StridedOrder::StridedOrder(std::uint64_t entries, int ranks, std::uint64_t batch,
                           std::uint64_t coalesce, StridedStart from, EpochLimit limit)
    : entries_(entries),
      ranks_(ranks),
      batch_(batch),
      coalesce_(coalesce),
      start_(from.position),
      limit_(limit),
      partial_(std::move(from.partial)) {
  require_usage(entries >= 1, "the data set has no samples", "pack some, or name another data set");
  require_usage(entries <= kMostEntries,
                fmt::format("a data set of {} samples is too large", entries),
                fmt::format("the limit is {}", kMostEntries));
  require_window(ranks, batch, coalesce);
  require_usage(start_ <= kMaxPosition, fmt::format("position {} is too large", start_), "");
  require_epochs(limit.epochs, entries);
  require_partial(partial_, start_);
  forget_finished();
  find_end();
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

void StridedOrder::find_end() {
  if (limit_.epochs == 0) return;
  const std::uint64_t end = position_of(limit_.epochs * entries_);
  const std::uint64_t left = end > start_ ? end - start_ : 0;
  full_windows_ = left / window_size();
  last_full_ = left % window_size() / batch_;
  tail_ = left % batch_;
  if (tail_ > 0) last_begin_ = start_ + full_windows_ * window_size();
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
  const std::uint64_t before = iteration % coalesce_ * count;
  return {whole.first + before, std::min(count, whole.count - std::min(before, whole.count))};
}

Run StridedOrder::window_run(int rank, std::uint64_t window) const {
  const std::uint64_t begin = start_ + window * window_size();
  if (!is_last(window)) return {begin + coalesce_ * share_begin(rank), coalesce_ * share(rank)};
  const std::uint64_t places = last_places();
  Run run{begin + places * share_begin(rank), places * share(rank)};
  if (limit_.end == OrderEnd::exact) run.count = last_runs().size(rank);
  if (limit_.end == OrderEnd::drop) run.count = last_full_ * share(rank);
  return run;
}

std::uint64_t StridedOrder::iterations() const {
  if (!limited()) return UINT64_MAX;
  return full_windows_ * coalesce_ + (limit_.end == OrderEnd::drop ? last_full_ : last_places());
}

std::uint64_t StridedOrder::iterations(std::uint64_t epochs) const {
  if (limited()) epochs = std::min(epochs, limit_.epochs);
  require_epochs(epochs, entries_);
  const std::uint64_t end = position_of(epochs * entries_);
  if (end <= start_) return 0;
  const std::uint64_t windows = (end - start_) / window_size();
  const std::uint64_t rest = (end - start_) % window_size();
  const RankRuns runs = is_last(windows) ? last_runs() : RankRuns{batch_, ranks_, coalesce_, 0};
  return std::min(windows * coalesce_ + runs.turns(rest), iterations());
}

// The position that stands for `global`, or for the first behind it that was not taken before the
// start. The last window aside.
std::uint64_t StridedOrder::position_of(std::uint64_t global) const {
  for (std::size_t i = partial_.size(); i > 0; --i) {
    global = PartialWindowMap(partial_[i - 1]).first_from(global);
  }
  return global;
}

// The last stretch left its window in positions of its own, which stand for those of the one
// before.
std::uint64_t StridedOrder::mapped(std::uint64_t position) const {
  if (position >= last_begin_) {
    const LastPlace place = last_place(position);
    if (fills_up() && !place.own()) return fill(place);
    position = last_begin_ + last_runs().begin(place.rank) + std::min(place.index, place.owned);
  }
  for (const PartialWindow& window : partial_) {
    position = PartialWindowMap(window)(position);
  }
  return position;
}

std::uint64_t StridedOrder::mapped_in_a_row(std::uint64_t position) const {
  std::uint64_t count = UINT64_MAX;
  if (position >= last_begin_) {
    const LastPlace place = last_place(position);
    if (!place.own()) return 1;
    count = place.owned - place.index;
    position = last_begin_ + last_runs().begin(place.rank) + place.index;
  } else if (last_begin_ != UINT64_MAX) {
    count = last_begin_ - position;
  }
  for (const PartialWindow& window : partial_) {
    const PartialWindowMap map(window);
    count = std::min(count, map.in_a_row(position));
    position = map(position);
  }
  return count;
}

// The last window --------------------------------------------------------------------------------

RankRuns StridedOrder::last_runs() const { return {batch_, ranks_, last_full_, tail_}; }

StridedOrder::LastPlace StridedOrder::last_place(std::uint64_t position) const {
  const RankRuns places{batch_, ranks_, last_places(), 0};
  const std::uint64_t offset = std::min(position - last_begin_, places.length() - 1);
  const int rank = places.rank_at(offset);
  return {.rank = rank,
          .index = position - last_begin_ - places.begin(rank),
          .owned = last_runs().size(rank)};
}

bool StridedOrder::fills(std::uint64_t position) const { return !last_place(position).own(); }

std::uint64_t StridedOrder::fill(const LastPlace& place) const {
  const std::uint64_t number = place.index - place.owned;
  const std::uint64_t windows = full_windows_ * coalesce_ * share(place.rank);
  const std::uint64_t draws = windows + place.owned;
  if (limit_.end == OrderEnd::pad && draws > 0) {
    return global(own_position(place.rank, draws - 1 - number % draws));
  }
  // The ranks below have filled up as much as they lack.
  const std::uint64_t before = share_begin(place.rank) - last_runs().tail_begin(place.rank);
  return (limit_.epochs - 1) * entries_ + (before + number) % entries_;
}

std::uint64_t StridedOrder::own_position(int rank, std::uint64_t draw) const {
  const std::uint64_t of_window = coalesce_ * share(rank);
  const std::uint64_t window = std::min(draw / of_window, full_windows_);
  return window_run(rank, window).first + (draw - window * of_window);
}

// Going on ---------------------------------------------------------------------------------------

bool StridedOrder::ends_within(std::uint64_t iterations) const {
  return limited() && iterations > full_windows_ * coalesce_;
}

StridedStart StridedOrder::after(std::uint64_t iterations) const {
  require_usage(
      iterations <= this->iterations(),
      fmt::format("no run can have done {} iterations of {} epochs on {} ranks: it had {}",
                  iterations, limit_.epochs, ranks_, this->iterations()),
      "resume from the state that the run saved");
  require_usage(iterations <= (kMaxPosition - start_) / batch_,
                fmt::format("{} iterations are too many to count", iterations), "");
  StridedStart next{.position = start_ + iterations * batch_,
                    .partial = {partial_.rbegin(), partial_.rend()}};
  const bool last = ends_within(iterations);
  const std::uint64_t full = last ? last_full_ : coalesce_;
  const std::uint64_t taken =
      iterations - (last ? full_windows_ : iterations / coalesce_) * coalesce_;
  if (taken > full) {  // also the last batch, which was filled up
    next.position -= batch_ - tail_;
  } else if (taken > 0 && (taken < full || (last && tail_ > 0))) {
    next.partial.push_back({.begin = next.position - taken * batch_,
                            .ranks = ranks_,
                            .batch = batch_,
                            .coalesce = full,
                            .iterations = taken,
                            .tail = last ? tail_ : 0});
  }
  return next;
}

std::uint64_t automatic_coalesce(std::uint64_t entries, std::uint64_t file_bytes, int ranks,
                                 std::uint64_t batch) {
  constexpr std::uint64_t kRun = std::uint64_t{1} << 22, kLeastWindows = 16;
  if (ranks <= 1 || entries == 0 || batch == 0 || batch > kLargestBatch) return 1;
  const std::uint64_t mean = std::max<std::uint64_t>(1, file_bytes / entries);
  if (mean >= kRun) return 1;
  const std::uint64_t iteration =
      std::max<std::uint64_t>(1, mean * batch / static_cast<std::uint64_t>(ranks));
  const std::uint64_t long_enough = (kRun + iteration - 1) / iteration;
  return std::max<std::uint64_t>(1, std::min(long_enough, entries / (kLeastWindows * batch)));
}

StridedStart start_after(std::uint64_t entries, std::uint64_t coalesce,
                         const std::vector<Segment>& done) {
  StridedStart start;
  for (const Segment& segment : done) {
    const StridedOrder order(entries, segment.ranks, segment.batch, coalesce, std::move(start),
                             {.epochs = segment.epochs});
    start = order.after(segment.iterations);
  }
  return start;
}

}  // namespace forebay
