// The list of an epoch, one class a kind of order: what is at a position, how the first ranks share
// it, and what a rank loads for its draws.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>

#include "forebay/epoch_order.hpp"
#include "order/dealt_epoch.hpp"

namespace forebay {

/// Immutable; safe from any thread.
class EpochList {
 public:
  virtual ~EpochList() = default;

  /// Deliveries of the epoch: samples times reuse.
  virtual std::uint64_t size() const = 0;
  /// The sample at `position` below size().
  virtual std::uint64_t sample(std::uint64_t position) const = 0;
  /// The number of the pass that `position` belongs to, counted over the epoch: `reuse` of them for
  /// each filling of what is in memory.
  virtual std::uint64_t pass_of(std::uint64_t position) const = 0;
  /// The samples at the positions from `first` on, one for each place of `to`.
  virtual void samples(std::uint64_t first, std::span<std::uint64_t> to) const;
  /// The draws of `rank` from `first` on, one for each place of `to`.
  void draws(const DealtEpoch& dealt, int rank, std::uint64_t first, std::span<Draw> to) const;
  /// For those who begin the epoch.
  virtual Deal deal(int ranks, std::uint64_t batch) const;

  /// The buffer that serves `draw` of `rank`.
  virtual Buffer buffer(const DealtEpoch& dealt, int rank, std::uint64_t draw) const = 0;
  virtual Place place(const DealtEpoch& dealt, int rank, std::uint64_t draw) const = 0;
  /// The first buffer for iterations from `iteration` on, and the one behind `buffer`.
  virtual std::optional<Buffer> first_buffer(const DealtEpoch& dealt, int rank,
                                             std::uint64_t iteration) const;
  virtual std::optional<Buffer> next_buffer(const DealtEpoch& dealt, int rank,
                                            const Buffer& buffer) const;
  virtual bool resident() const { return false; }

 protected:
  /// The draws from `first` on, each loaded for itself.
  Buffer load_singly(const DealtEpoch& dealt, int rank, const Run& draws) const;
};

/// `options` (valid) as those who begin the epoch have them.
std::unique_ptr<const EpochList> make_epoch_list(const OrderOptions& options, std::uint64_t epoch);

/// The draws of `window` iterations of `share` draws that have `draw` among them; of the draws from
/// `from` up to `end` only.
Run window_around(std::uint64_t share, std::uint64_t window, std::uint64_t draw, std::uint64_t from,
                  std::uint64_t end);

/// What a permutation of an epoch is for: none has the key of another.
enum class OrderKey : std::uint64_t { units = 2, unit, round, window, pool };

std::uint64_t order_key(OrderKey purpose, std::uint64_t seed, std::uint64_t epoch);

}  // namespace forebay
