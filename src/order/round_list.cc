// The list of `in_memory`: units permuted, a round the next N_c of them, samples permuted over each
// round, delivered k times (reuse).
//
//   slots      |round 0: N_c units   |round 1: N_c units   |rest    |
//   positions  |pass 0 |pass 1       |pass 0 |pass 1       |...          k = 2, each a permutation
//   memory     |rank 0 |rank 1 |...  |rank 0 |rank 1 |...               units of a round, in slot
//   order
//
// When all units fit in one round they are not permuted, so that each rank holds the same ones in
// every epoch.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "core/mix.hpp"
#include "core/permutation.hpp"
#include "order/epoch_list.hpp"
#include "order/order_limits.hpp"
#include "order/order_table.hpp"
#include "order/unit_order.hpp"

namespace forebay {
namespace {

UnitOrder units_of(const OrderOptions& options, std::uint64_t epoch) {
  const RoundPlan plan = plan_rounds(options);
  if (plan.units_a_round == plan.cut.units()) return {plan.cut, std::nullopt};
  const std::uint64_t key = order_key(OrderKey::units, options.seed, epoch);
  return {plan.cut, Permutation(plan.cut.units(), key)};
}

void require_in_memory(const OrderOptions& options) {
  require_usage(std::isfinite(options.ratio) && options.ratio > 0 && options.ratio <= 1,
                fmt::format("a memory ratio of {} makes no sense", options.ratio),
                "give the memory ratio a number above 0 and at most 1");
  if (!options.bounds) require_group(options);
  const RoundPlan plan = plan_rounds(options);
  require_usage(
      plan.units_a_round <= UINT64_MAX / 2 / static_cast<std::uint64_t>(options.ranks),
      fmt::format("{} units a round on {} ranks are too many", plan.units_a_round, options.ranks),
      "make units larger with --group");
  require_usage(options.reuse == 1 || options.reuse_scope == ReuseScope::global,
                "an in_memory order recombines a round over all ranks",
                "give --reuse-scope global");
}

class RoundList final : public EpochList {
 public:
  RoundList(const OrderOptions& options, std::uint64_t epoch)
      : key_(order_key(OrderKey::round, options.seed, epoch)),
        units_(units_of(options, epoch)),
        units_a_round_(plan_rounds(options).units_a_round),
        reuse_(options.reuse),
        window_(options.window) {}

  std::uint64_t size() const override { return reuse_ * units_.begin(units_.units()); }
  std::uint64_t sample(std::uint64_t position) const override {
    const Pass pass = this->pass(position);
    return sample_in(origin(pass.samples.first + pass.order(pass.place)));
  }

  std::uint64_t pass_of(std::uint64_t position) const override { return pass(position).number; }
  void samples(std::uint64_t first, std::span<std::uint64_t> to) const override {
    while (!to.empty()) {
      const Pass pass = this->pass(first);
      const auto part =
          to.first(std::min<std::uint64_t>(to.size(), pass.samples.count - pass.place));
      pass.order.images(pass.place, part);
      for (std::uint64_t& sample : part) {
        sample += pass.samples.first;
        if (units_.permuted()) sample = sample_in(origin(sample));
      }
      first += part.size();
      to = to.subspan(part.size());
    }
  }

  Buffer buffer(const DealtEpoch& dealt, int rank, std::uint64_t draw) const override {
    if (draw >= served_by_rounds(dealt, rank)) {
      return load_singly(dealt, rank, single_draws(dealt, rank, draw));
    }
    const bool repeat = draw >= dealt.own(rank);
    return round_buffer(dealt, rank, repeat ? rounds() - 1 : round_at(dealt.position(rank, draw)));
  }

  Place place(const DealtEpoch& dealt, int rank, std::uint64_t draw) const override {
    if (draw >= served_by_rounds(dealt, rank)) {
      return {rank, draw - single_draws(dealt, rank, draw).first};
    }
    const Pass pass = this->pass(dealt.position(rank, draw));
    const Origin from = origin(pass.samples.first + pass.order(pass.place));
    const Run slots = this->slots(from.slot / units_a_round_);
    const int ranks = dealt.deal().ranks();
    const int holder = rank_with(from.slot - slots.first, slots.count, ranks);
    const std::uint64_t first = slots.first + share_begin_of(holder, slots.count, ranks);
    return {holder, units_.begin(from.slot) - units_.begin(first) + from.offset};
  }

  // All ranks begin with the round of the iteration's first sample, whoever draws it, and go
  // through all rounds, also those that they draw nothing from: others draw what they hold.
  std::optional<Buffer> first_buffer(const DealtEpoch& dealt, int rank,
                                     std::uint64_t iteration) const override {
    if (iteration >= dealt.steps()) return std::nullopt;
    return round_buffer(dealt, rank, round_at(dealt.begin_of(iteration)));
  }

  std::optional<Buffer> next_buffer(const DealtEpoch& dealt, int rank,
                                    const Buffer& before) const override {
    const std::uint64_t last = round_at(dealt.begin_of(dealt.steps()) - 1);
    if (before.shared && before.round < last) {
      return round_buffer(dealt, rank, before.round + 1);
    }
    return EpochList::next_buffer(dealt, rank, before);
  }

  bool resident() const override { return units_a_round_ == units_.units(); }

 private:
  struct Origin {
    std::uint64_t slot;
    std::uint64_t offset;
  };
  /// One delivery of a round.
  struct Pass {
    Run samples;  ///< of the round
    Permutation order;
    std::uint64_t place;   ///< the position in it
    std::uint64_t number;  ///< counted over the epoch
  };

  std::uint64_t rounds() const { return (units_.units() - 1) / units_a_round_ + 1; }
  std::uint64_t round_at(std::uint64_t position) const {
    return units_.slot_at(position / reuse_) / units_a_round_;
  }
  /// The slots of `round`, and its positions without and with reuse.
  Run slots(std::uint64_t round) const {
    const std::uint64_t first = round * units_a_round_;
    return {first, std::min(units_a_round_, units_.units() - first)};
  }

  Run samples_of(std::uint64_t round) const {
    const Run slots = this->slots(round);
    const std::uint64_t first = units_.begin(slots.first);
    return {first, units_.begin(slots.first + slots.count) - first};
  }

  Run region(std::uint64_t round) const {
    const Run samples = samples_of(round);
    return {reuse_ * samples.first, reuse_ * samples.count};
  }

  Pass pass(std::uint64_t position) const {
    const std::uint64_t round = round_at(position);
    const Run samples = samples_of(round);
    const std::uint64_t place = position - reuse_ * samples.first;
    const std::uint64_t pass = place / samples.count;
    return {.samples = samples,
            .order = Permutation(samples.count, mix_key({key_, round, pass})),
            .place = place % samples.count,
            .number = round * reuse_ + pass};
  }

  /// Where what is at `place` of all units in slot order comes from,
  Origin origin(std::uint64_t place) const {
    const std::uint64_t slot = units_.slot_at(place);
    return {slot, place - units_.begin(slot)};
  }

  /// and which sample that is.
  std::uint64_t sample_in(const Origin& from) const {
    return units_.samples(from.slot).first + from.offset;
  }
  Buffer round_buffer(const DealtEpoch& dealt, int rank, std::uint64_t round) const {
    const Run slots = this->slots(round), region = this->region(round);
    const std::uint64_t first = dealt.draws_below(rank, region.first);
    const bool last = round + 1 == rounds();
    const std::uint64_t end =
        last ? served_by_rounds(dealt, rank)
             : std::min(dealt.draws_below(rank, region.first + region.count), dealt.own(rank));
    Buffer buffer{.loads = {},
                  .first = std::min(first, end),
                  .count = end - std::min(first, end),
                  .shared = true,
                  .round = round};
    const int ranks = dealt.deal().ranks();
    for (std::uint64_t slot = share_begin_of(rank, slots.count, ranks);
         slot < share_begin_of(rank + 1, slots.count, ranks); ++slot) {
      const Run samples = units_.samples(slots.first + slot);
      Run* before = buffer.loads.empty() ? nullptr : &buffer.loads.back();
      if (before != nullptr && before->first + before->count == samples.first) {
        before->count += samples.count;
      } else {
        buffer.loads.push_back(samples);
      }
    }
    return buffer;
  }

  /// Up to here draws of `rank` are served by rounds; repeats behind it are loaded singly.
  std::uint64_t served_by_rounds(const DealtEpoch& dealt, int rank) const {
    const std::uint64_t own = dealt.own(rank), draws = dealt.draws(rank);
    if (own == draws || rounds() == 1) return draws;
    const std::uint64_t last = rounds() - 1;
    if (round_at(dealt.position(rank, own)) != last) return own;
    const Run repeats = dealt.draws_in(region(last), rank, own);
    return repeats.first + repeats.count;
  }

  Run single_draws(const DealtEpoch& dealt, int rank, std::uint64_t draw) const {
    return window_around(dealt.deal().share(rank), window_, draw, served_by_rounds(dealt, rank),
                         dealt.draws(rank));
  }

  std::uint64_t key_;
  UnitOrder units_;
  std::uint64_t units_a_round_;
  std::uint64_t reuse_;
  std::uint64_t window_;
};

}  // namespace

OrderRow in_memory_order() {
  return {.name = "in_memory",
          .exchanges = true,
          .list = [](const OrderOptions& options,
                     std::uint64_t epoch) { return std::make_unique<RoundList>(options, epoch); },
          .validate = require_in_memory,
          .parameters =
              [](const OrderOptions& options) {
                return fmt::format(",ratio={}", options.ratio) + units_text(options);
              },
          .rounds = plan_rounds,
          .kept = {}};
}

}  // namespace forebay
