// A data set cut into units of consecutive samples, and the units in an order of their own.
//
//   unit  |0      |1      |2      |3   |        cut: all of one size but the last, or by bounds
//   slot  |2      |0      |3   |1      |        position 0..N-1 counts samples slot by slot
//
// Cut evenly, everything is arithmetic: only where the short unit has gone matters. Cut by bounds,
// the slots' first positions are held in a table.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/permutation.hpp"
#include "forebay/epoch_order.hpp"

namespace forebay {

/// Immutable value.
class UnitCut {
 public:
  /// Units of `size` samples, the last one maybe shorter; or with first samples `bounds`, ascending
  /// from 0 to `entries`. 1 <= size, entries.
  UnitCut(std::uint64_t entries, std::uint64_t size, SharedNumbers bounds = nullptr);

  std::uint64_t units() const { return units_; }
  Run samples(std::uint64_t unit) const;
  /// All of one size but the last.
  bool even() const { return bounds_ == nullptr; }
  /// Of an even cut.
  std::uint64_t size() const { return size_; }

 private:
  std::uint64_t entries_;
  std::uint64_t size_;
  SharedNumbers bounds_;
  std::uint64_t units_;
};

/// What `options` cut units by, for OrderOptions::identity().
std::string units_text(const OrderOptions& options);

/// The neighbours that `shuffled` keeps together. `options` are valid.
UnitCut kept_together(const OrderOptions& options);

// How `in_memory` cuts a data set into units and rounds; see forebay/epoch_order.hpp.

struct RoundPlan {
  UnitCut cut;
  std::uint64_t units_a_round;  ///< N_c; all of them when the ratio is 1

  std::uint64_t rounds() const { return (cut.units() - 1) / units_a_round + 1; }
};

/// N_mem = floor(R * N): the samples that all ranks hold together in one round.
std::uint64_t samples_in_memory(const OrderOptions& options);

/// Rounds that never hold more than N_mem samples: as many units as fit, the largest ones counted.
/// Throws usage when not one unit fits.
RoundPlan plan_rounds(const OrderOptions& options);

/// Immutable value; O(1), or O(log units) with bounds.
class UnitOrder {
 public:
  /// `order`, of as many numbers as units; without one, units are in order.
  UnitOrder(UnitCut cut, std::optional<Permutation> order);

  const UnitCut& cut() const { return cut_; }
  std::uint64_t units() const { return cut_.units(); }
  /// As opposed to all in order, so that positions are samples.
  bool permuted() const { return order_.has_value(); }
  std::uint64_t unit(std::uint64_t slot) const { return order_ ? (*order_)(slot) : slot; }
  /// Of the slots from `first` on, where they are permuted.
  void units_from(std::uint64_t first, std::span<std::uint64_t> to) const {
    order_->images(first, to);
  }
  Run samples(std::uint64_t slot) const { return cut_.samples(unit(slot)); }
  /// The first position of `slot`, which may be units(): then all samples.
  std::uint64_t begin(std::uint64_t slot) const;
  std::uint64_t size(std::uint64_t slot) const { return begin(slot + 1) - begin(slot); }
  std::uint64_t slot_at(std::uint64_t position) const;
  /// Of an even cut: the slot of the last unit, and how many samples it lacks.
  std::uint64_t short_slot() const { return short_slot_; }
  std::uint64_t lacking() const { return lacking_; }

 private:
  UnitCut cut_;
  std::optional<Permutation> order_;
  std::uint64_t short_slot_ = 0;
  std::uint64_t lacking_ = 0;
  SharedNumbers begins_;  ///< with bounds
};

}  // namespace forebay
