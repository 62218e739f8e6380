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
#pragma once

#include "core/permutation.hpp"
#include "order/epoch_list.hpp"
#include "order/unit_order.hpp"

namespace forebay {

class RoundList final : public EpochList {
 public:
  RoundList(const OrderOptions& options, std::uint64_t epoch);

  std::uint64_t size() const override { return reuse_ * units_.begin(units_.units()); }
  std::uint64_t sample(std::uint64_t position) const override;
  std::uint64_t pass_of(std::uint64_t position) const override { return pass(position).number; }
  void samples(std::uint64_t first, std::span<std::uint64_t> to) const override;
  Buffer buffer(const DealtEpoch& dealt, int rank, std::uint64_t draw) const override;
  Place place(const DealtEpoch& dealt, int rank, std::uint64_t draw) const override;
  std::optional<Buffer> first_buffer(const DealtEpoch& dealt, int rank,
                                     std::uint64_t iteration) const override;
  std::optional<Buffer> next_buffer(const DealtEpoch& dealt, int rank,
                                    const Buffer& buffer) const override;
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
  std::uint64_t round_at(std::uint64_t position) const;
  /// The slots of `round`, and its positions without and with reuse.
  Run slots(std::uint64_t round) const;
  Run samples_of(std::uint64_t round) const;
  Run region(std::uint64_t round) const;
  Pass pass(std::uint64_t position) const;
  /// Where what is at `place` of all units in slot order comes from,
  Origin origin(std::uint64_t place) const;
  /// and which sample that is.
  std::uint64_t sample_in(const Origin& from) const;
  Buffer round_buffer(const DealtEpoch& dealt, int rank, std::uint64_t round) const;
  /// Up to here draws of `rank` are served by rounds; repeats behind it are loaded singly.
  std::uint64_t served_by_rounds(const DealtEpoch& dealt, int rank) const;
  Run single_draws(const DealtEpoch& dealt, int rank, std::uint64_t draw) const;

  std::uint64_t key_;
  UnitOrder units_;
  std::uint64_t units_a_round_;
  std::uint64_t reuse_;
  std::uint64_t window_;
};

}  // namespace forebay
