// The list of `grouped`: units permuted, samples permuted in each, delivered k times (reuse).
//
//   position   |slot 0, pass 0|slot 0, pass 1|slot 1, pass 0|slot 1, pass 1|...      k = 2
//
// Within a process a pass is a permutation of the unit. Across ranks, the units that the ranks of
// the scope hold at the same time (the first of each, the second of each, ...) make a pool; passes
// behind the first one deal a permutation of the pool to the places of its units. The last units,
// where only some ranks have one more, stay with their rank.
#pragma once

#include "order/epoch_list.hpp"
#include "order/unit_order.hpp"

namespace forebay {

class GroupedList final : public EpochList {
 public:
  GroupedList(const OrderOptions& options, std::uint64_t epoch);

  std::uint64_t size() const override { return reuse_ * units_.begin(units_.units()); }
  std::uint64_t sample(std::uint64_t position) const override;
  std::uint64_t pass_of(std::uint64_t position) const override;
  Deal deal(int ranks, std::uint64_t batch) const override;
  Buffer buffer(const DealtEpoch& dealt, int rank, std::uint64_t draw) const override;
  Place place(const DealtEpoch& dealt, int rank, std::uint64_t draw) const override;
  std::optional<Buffer> first_buffer(const DealtEpoch& dealt, int rank,
                                     std::uint64_t iteration) const override;
  std::optional<Buffer> next_buffer(const DealtEpoch& dealt, int rank,
                                    const Buffer& buffer) const override;

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

  Origin origin(std::uint64_t position) const;
  /// What the permuted `pool` has at the place of `offset` in `slot`.
  Origin recombined(const Pool& pool, std::uint64_t slot, std::uint64_t offset,
                    std::uint64_t pass) const;
  Buffer turn_buffer(const DealtEpoch& dealt, int rank, std::uint64_t turn) const;
  /// Turns in which every rank has a unit.
  std::uint64_t pooled_turns() const { return units_.units() / static_cast<std::uint64_t>(ranks_); }
  bool across_ranks() const { return reuse_ > 1 && scope_ != ReuseScope::process; }
  bool loads_singly(const DealtEpoch& dealt, int rank, std::uint64_t draw) const;
  std::uint64_t first_slot(int rank) const;
  int rank_of(std::uint64_t slot) const;
  Run single_draws(const DealtEpoch& dealt, int rank, std::uint64_t draw) const;

  std::uint64_t unit_key_;
  std::uint64_t pool_key_;
  UnitOrder units_;
  int ranks_;
  std::uint64_t reuse_;
  ReuseScope scope_;
  int ranks_per_node_;
  std::uint64_t window_;
};

}  // namespace forebay
