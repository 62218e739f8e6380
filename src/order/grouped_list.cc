// The list of `grouped`: units permuted, samples permuted in each, delivered k times (reuse).
//
//   position   |slot 0, pass 0|slot 0, pass 1|slot 1, pass 0|slot 1, pass 1|...      k = 2
//
// Within a process a pass is a permutation of the unit. Across ranks, the units that the ranks of
// the scope hold at the same time (the first of each, the second of each, ...) make a pool; passes
// behind the first one deal a permutation of the pool to the places of its units. The last units,
// where only some ranks have one more, stay with their rank.
#include <fmt/format.h>

#include <algorithm>

#include "core/mix.hpp"
#include "core/permutation.hpp"
#include "order/epoch_list.hpp"
#include "order/order_limits.hpp"
#include "order/order_table.hpp"
#include "order/unit_order.hpp"

namespace forebay {
namespace {

UnitOrder units_of(const OrderOptions& options, std::uint64_t epoch) {
  UnitCut cut(options.entries, options.group, options.bounds);
  const std::uint64_t key = order_key(OrderKey::units, options.seed, epoch);
  return {cut, Permutation(cut.units(), key)};
}

void require_grouped(const OrderOptions& options) {
  if (!options.bounds) {
    require_usage(options.group >= 1, "a grouped order needs the size of a group",
                  "give --group the number of samples that are read together");
    require_group(options);
  }
  const UnitCut cut(options.entries, options.group, options.bounds);
  const auto ranks = static_cast<std::uint64_t>(options.ranks);
  require_usage(cut.units() >= ranks,
                fmt::format("{} groups cannot be shared by {} ranks", cut.units(), ranks),
                "make groups smaller with --group, or use fewer ranks");
  require_usage(cut.units() <= UINT64_MAX / 2 / ranks,
                fmt::format("{} groups on {} ranks are too many", cut.units(), ranks),
                "make groups larger with --group");
  if (options.reuse == 1 || options.reuse_scope == ReuseScope::process) return;
  require_usage(cut.even(), "reuse across ranks needs groups of one size",
                "give --group, or --reuse-scope process");
  require_usage(options.batch % ranks == 0,
                fmt::format("reuse across ranks needs equal shares, and {} ranks do not divide a "
                            "batch of {}",
                            ranks, options.batch),
                "give --batch a multiple of the ranks, or --reuse-scope process");
}

class GroupedList final : public EpochList {
 public:
  GroupedList(const OrderOptions& options, std::uint64_t epoch)
      : unit_key_(order_key(OrderKey::unit, options.seed, epoch)),
        pool_key_(order_key(OrderKey::pool, options.seed, epoch)),
        units_(units_of(options, epoch)),
        ranks_(options.ranks),
        reuse_(options.reuse),
        scope_(options.reuse_scope),
        ranks_per_node_(options.ranks_per_node > 0 ? options.ranks_per_node : options.ranks),
        window_(options.window) {}

  std::uint64_t size() const override { return reuse_ * units_.begin(units_.units()); }
  std::uint64_t sample(std::uint64_t position) const override {
    const Origin from = origin(position);
    return units_.samples(from.slot).first + from.offset;
  }

  void samples(std::uint64_t first, std::span<std::uint64_t> to) const override {
    while (!to.empty()) {
      const Pass pass = pass_at(first);
      const auto part = to.first(std::min<std::uint64_t>(to.size(), pass.size - pass.offset));
      if (pass.number > 0 && across_ranks()) {
        EpochList::samples(first, part);
      } else {
        order_of(pass).images(pass.offset, part);
        const std::uint64_t begin = units_.samples(pass.slot).first;
        for (std::uint64_t& sample : part) sample += begin;
      }
      first += part.size();
      to = to.subspan(part.size());
    }
  }

  std::uint64_t pass_of(std::uint64_t position) const override {
    const Pass pass = pass_at(position);
    return pass.slot * reuse_ + pass.number;
  }

  Deal deal(int ranks, std::uint64_t batch) const override {
    std::vector<std::uint64_t> begins;
    begins.reserve(static_cast<std::size_t>(ranks) + 1);
    for (int rank = 0; rank <= ranks; ++rank) {
      begins.push_back(reuse_ * units_.begin(share_begin_of(rank, units_.units(), ranks)));
    }
    return Deal::by_runs(std::move(begins), batch);
  }

  Buffer buffer(const DealtEpoch& dealt, int rank, std::uint64_t draw) const override {
    if (loads_singly(dealt, rank, draw)) {
      return load_singly(dealt, rank, single_draws(dealt, rank, draw));
    }
    const std::uint64_t slot = units_.slot_at(dealt.position(rank, draw) / reuse_);
    if (across_ranks()) {
      const std::uint64_t turn = slot - first_slot(rank);
      if (turn < pooled_turns()) return turn_buffer(dealt, rank, turn);
    }
    const Run region{reuse_ * units_.begin(slot), reuse_ * units_.size(slot)};
    const Run served = dealt.draws_in(region, rank, draw);
    return {.loads = {units_.samples(slot)}, .first = served.first, .count = served.count};
  }

  Place place(const DealtEpoch& dealt, int rank, std::uint64_t draw) const override {
    if (loads_singly(dealt, rank, draw)) {
      return {rank, draw - single_draws(dealt, rank, draw).first};
    }
    const Origin from = origin(dealt.position(rank, draw));
    return {across_ranks() ? rank_of(from.slot) : rank, from.offset};
  }

  // The rank with the short unit is ahead of the others, who may still draw what it has used up:
  // all begin with the turn of those behind.
  std::optional<Buffer> first_buffer(const DealtEpoch& dealt, int rank,
                                     std::uint64_t iteration) const override {
    if (across_ranks() && !dealt.resumed() && iteration < dealt.steps()) {
      const std::uint64_t draw = iteration * dealt.deal().share(rank);
      const std::uint64_t turn = draw / (reuse_ * units_.cut().size());
      if (turn < pooled_turns()) return turn_buffer(dealt, rank, turn);
    }
    return EpochList::first_buffer(dealt, rank, iteration);
  }

  std::optional<Buffer> next_buffer(const DealtEpoch& dealt, int rank,
                                    const Buffer& before) const override {
    if (before.shared && before.round + 1 < pooled_turns()) {
      return turn_buffer(dealt, rank, before.round + 1);
    }
    return EpochList::next_buffer(dealt, rank, before);
  }

 private:
  /// A sample in its unit.
  struct Origin {
    std::uint64_t slot;
    std::uint64_t offset;
  };
  /// Units held at the same time: number `turn` of ranks `first` up to `end`.
  struct Pool {
    int first;
    int end;
    std::uint64_t turn;
  };

  /// Where a position is: in pass `number` of the unit of a slot, which has `size` samples.
  struct Pass {
    std::uint64_t slot;
    std::uint64_t size;
    std::uint64_t number;
    std::uint64_t offset;
  };

  Pass pass_at(std::uint64_t position) const {
    const std::uint64_t slot = units_.slot_at(position / reuse_), size = units_.size(slot);
    const std::uint64_t place = position - reuse_ * units_.begin(slot);
    return {.slot = slot, .size = size, .number = place / size, .offset = place % size};
  }

  /// Of one that stays within a process.
  Permutation order_of(const Pass& pass) const {
    return {pass.size, mix_key({unit_key_, units_.unit(pass.slot), pass.number})};
  }

  Origin origin(std::uint64_t position) const {
    const Pass pass = pass_at(position);
    if (pass.number > 0 && across_ranks()) {
      const int rank = rank_of(pass.slot);
      const std::uint64_t turn = pass.slot - first_slot(rank);
      if (turn < pooled_turns()) {
        const bool all = scope_ == ReuseScope::global;
        const int first = all ? 0 : rank / ranks_per_node_ * ranks_per_node_;
        const int end = all ? ranks_ : std::min(first + ranks_per_node_, ranks_);
        return recombined({first, end, turn}, pass.slot, pass.offset, pass.number);
      }
    }
    return {pass.slot, order_of(pass)(pass.offset)};
  }

  /// What the permuted `pool` has at the place of `offset` in `slot`.
  // The pool's samples are numbered rank by rank; only the short unit, if it is in the pool, is not
  // of full size.
  Origin recombined(const Pool& pool, std::uint64_t slot, std::uint64_t offset,
                    std::uint64_t pass) const {
    const std::uint64_t unit = units_.cut().size();
    const std::uint64_t full = static_cast<std::uint64_t>(pool.end - pool.first) * unit;
    const int short_rank = rank_of(units_.short_slot());
    const bool is_short = short_rank >= pool.first && short_rank < pool.end &&
                          units_.short_slot() == first_slot(short_rank) + pool.turn;
    const std::uint64_t lacking = is_short ? units_.lacking() : 0;
    const std::uint64_t gap =
        is_short ? static_cast<std::uint64_t>(short_rank - pool.first + 1) * unit - lacking : full;
    std::uint64_t number = static_cast<std::uint64_t>(rank_of(slot) - pool.first) * unit + offset;
    if (number >= gap) number -= lacking;
    const auto first = static_cast<std::uint64_t>(pool.first);
    const Permutation order(full - lacking, mix_key({pool_key_, first, pool.turn, pass}));
    std::uint64_t image = order(number);
    if (image >= gap) image += lacking;
    const int from = pool.first + static_cast<int>(image / unit);
    return {first_slot(from) + pool.turn, image % unit};
  }

  // Also where `drop` leaves nothing of it to this rank: others may draw what it holds.
  Buffer turn_buffer(const DealtEpoch& dealt, int rank, std::uint64_t turn) const {
    const std::uint64_t slot = first_slot(rank) + turn;
    const std::uint64_t before = dealt.deal().draws_before(rank), own = dealt.own(rank);
    const std::uint64_t first = std::min(reuse_ * units_.begin(slot) - before, own);
    const std::uint64_t end = std::min(reuse_ * units_.begin(slot + 1) - before, own);
    return {.loads = {units_.samples(slot)},
            .first = first,
            .count = end - first,
            .shared = true,
            .round = turn};
  }

  /// Turns in which every rank has a unit.
  std::uint64_t pooled_turns() const { return units_.units() / static_cast<std::uint64_t>(ranks_); }
  bool across_ranks() const { return reuse_ > 1 && scope_ != ReuseScope::process; }
  // Units that others hold are not there for those who take over an epoch, or repeat.
  bool loads_singly(const DealtEpoch& dealt, int rank, std::uint64_t draw) const {
    return across_ranks() && (dealt.resumed() || draw >= dealt.own(rank));
  }
  std::uint64_t first_slot(int rank) const { return share_begin_of(rank, units_.units(), ranks_); }
  int rank_of(std::uint64_t slot) const { return rank_with(slot, units_.units(), ranks_); }
  Run single_draws(const DealtEpoch& dealt, int rank, std::uint64_t draw) const {
    const std::uint64_t own = dealt.own(rank);
    const bool repeat = draw >= own;
    return window_around(dealt.deal().share(rank), window_, draw, repeat ? own : 0,
                         repeat ? dealt.draws(rank) : own);
  }

  std::uint64_t unit_key_;
  std::uint64_t pool_key_;
  UnitOrder units_;
  int ranks_;
  std::uint64_t reuse_;
  ReuseScope scope_;
  int ranks_per_node_;
  std::uint64_t window_;
};

}  // namespace

OrderRow grouped_order() {
  return {.name = "grouped",
          .list = [](const OrderOptions& options,
                     std::uint64_t epoch) { return std::make_unique<GroupedList>(options, epoch); },
          .validate = require_grouped,
          .parameters = units_text,
          .rounds =
              [](const OrderOptions& options) {
                return RoundPlan{UnitCut(options.entries, options.group, options.bounds),
                                 static_cast<std::uint64_t>(options.ranks)};
              },
          .kept = {}};
}

}  // namespace forebay
