#include "order/window_list.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "core/mix.hpp"
#include "core/permutation.hpp"
#include "order/order_limits.hpp"
#include "order/order_table.hpp"
#include "order/unit_order.hpp"

namespace forebay {

WindowList::WindowList(const OrderOptions& options, std::uint64_t samples, std::uint64_t epoch)
    : key_(order_key(OrderKey::window, options.seed, epoch)),
      samples_(samples),
      ranks_(options.ranks),
      batch_(options.batch),
      window_(options.window),
      reuse_(options.reuse),
      scope_(options.reuse_scope),
      ranks_per_node_(options.ranks_per_node > 0 ? options.ranks_per_node : options.ranks) {}

// What is left behind the last whole batch counts as a window of its own.
std::uint64_t WindowList::pass_of(std::uint64_t position) const {
  const std::uint64_t full = samples_ / batch_ * batch_, in_window = window_ * batch_;
  if (position >= reuse_ * full) {
    const std::uint64_t windows = (full + in_window - 1) / in_window;
    return windows * reuse_ + (position - reuse_ * full) / (samples_ - full);
  }
  const std::uint64_t window = position / reuse_ / in_window;
  const std::uint64_t first = window * in_window, count = std::min(in_window, full - first);
  return window * reuse_ + (position - reuse_ * first) / count;
}

std::uint64_t WindowList::first_pass(std::uint64_t position) const {
  const std::uint64_t full = samples_ / batch_ * batch_;
  if (position >= reuse_ * full) return full + (position - reuse_ * full) % (samples_ - full);
  const std::uint64_t window = position / reuse_ / (window_ * batch_);
  const std::uint64_t first = window * window_ * batch_;
  const std::uint64_t count = std::min(window_ * batch_, full - first);
  const std::uint64_t place = position - reuse_ * first;
  const std::uint64_t pass = place / count, number = place % count;
  return first + (pass == 0 ? number : recombined(window, count / batch_, number, pass));
}

// The samples of the ranks of a scope are numbered batch by batch.
std::uint64_t WindowList::recombined(std::uint64_t window, std::uint64_t batches,
                                     std::uint64_t number, std::uint64_t pass) const {
  int first = 0, end = ranks_;
  if (scope_ != ReuseScope::global) {
    const int together = scope_ == ReuseScope::process ? 1 : ranks_per_node_;
    first = rank_with(number % batch_, batch_, ranks_) / together * together;
    end = std::min(first + together, ranks_);
  }
  const std::uint64_t begin = share_begin(first), share = share_begin(end) - begin;
  const Permutation order(batches * share,
                          mix_key({key_, window, pass, static_cast<std::uint64_t>(first)}));
  const std::uint64_t image = order(number / batch_ * share + (number % batch_ - begin));
  return image / share * batch_ + begin + image % share;
}

std::uint64_t WindowList::draws_in_windows(const DealtEpoch& dealt, int rank) const {
  if (reuse_ == 1 || dealt.resumed()) return 0;
  return std::min(reuse_ * (samples_ / batch_) * dealt.deal().share(rank), dealt.own(rank));
}

Run WindowList::draws_together(const DealtEpoch& dealt, int rank, std::uint64_t draw) const {
  const std::uint64_t share = dealt.deal().share(rank);
  const std::uint64_t in_windows = draws_in_windows(dealt, rank);
  if (draw < in_windows) return window_around(share, reuse_ * window_, draw, 0, in_windows);
  return window_around(share, window_, draw, in_windows, dealt.draws(rank));
}

Buffer WindowList::buffer(const DealtEpoch& dealt, int rank, std::uint64_t draw) const {
  const Run together = draws_together(dealt, rank, draw);
  if (draw >= draws_in_windows(dealt, rank)) return load_singly(dealt, rank, together);
  Buffer buffer = load_singly(dealt, rank, {together.first, together.count / reuse_});
  buffer.count = together.count;
  buffer.shared = scope_ != ReuseScope::process;
  buffer.round = together.first / (dealt.deal().share(rank) * reuse_ * window_);
  return buffer;
}

Place WindowList::place(const DealtEpoch& dealt, int rank, std::uint64_t draw) const {
  const Run together = draws_together(dealt, rank, draw);
  if (draw >= draws_in_windows(dealt, rank)) return {rank, draw - together.first};
  const std::uint64_t from = first_pass(dealt.position(rank, draw));
  const std::uint64_t batch = from / batch_ % window_, number = from % batch_;
  const int holder = rank_with(number, batch_, ranks_);
  const std::uint64_t share = share_begin(holder + 1) - share_begin(holder);
  return {holder, batch * share + number - share_begin(holder)};
}

namespace {

class ShuffledList final : public WindowList {
 public:
  ShuffledList(const OrderOptions& options, std::uint64_t epoch)
      : WindowList(options, options.entries, epoch),
        units_(kept_together(options),
               Permutation(kept_together(options).units(),
                           order_key(OrderKey::units, options.seed, epoch))) {}

  void samples(std::uint64_t first, std::span<std::uint64_t> to) const override {
    const bool units_are_samples = size() == units_.units();  // each delivered once
    units_are_samples ? units_.units_from(first, to) : EpochList::samples(first, to);
  }

 private:
  std::uint64_t plain(std::uint64_t position) const override {
    const std::uint64_t slot = units_.slot_at(position);
    return units_.samples(slot).first + (position - units_.begin(slot));
  }

  UnitOrder units_;
};

class CallersList final : public WindowList {
 public:
  CallersList(const OrderOptions& options, std::uint64_t epoch)
      : WindowList(options, options.ids->size(), epoch), list_(options.ids) {}

 private:
  std::uint64_t plain(std::uint64_t position) const override { return (*list_)[position]; }

  SharedNumbers list_;
};

}  // namespace

OrderRow shuffled_order() {
  return {
      .name = "shuffled",
      .list = [](const OrderOptions& options,
                 std::uint64_t epoch) { return std::make_unique<ShuffledList>(options, epoch); },
      .validate =
          [](const OrderOptions& options) {
            require_usage(options.keep <= options.entries,
                          fmt::format("{} neighbours of {} samples cannot be kept together",
                                      options.keep, options.entries),
                          "give --keep a number from 1 to the number of samples, or 0 for all");
          },
      .parameters =
          [](const OrderOptions& options) {
            return fmt::format(",keep={}", kept_together(options).size());
          },
      .rounds = {},
      .kept = [](const OrderOptions& options) { return options.keep; }};
}

OrderRow listed_order() {
  return {.name = "listed",
          .takes_ids = true,
          .list = [](const OrderOptions& options,
                     std::uint64_t epoch) { return std::make_unique<CallersList>(options, epoch); },
          .parameters =
              [](const OrderOptions& options) { return ",list=" + text_of_numbers(options.ids); },
          .rounds = {},
          .kept = {}};
}

}  // namespace forebay
