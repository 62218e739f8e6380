// Orders that are new in every epoch: which sample goes to which rank at which iteration, and what
// a rank has to hold in memory meanwhile. Pure functions, no I/O, no MPI. (StridedOrder in
// order.hpp is the order without any randomness.)
//
// An epoch is a list of N samples. The data set is cut into units of consecutive samples:
//
//   kind       unit                list of an epoch                          memory of a rank
//   grouped    G samples or files  units permuted, samples permuted in each  one unit a buffer
//   shuffled   k samples (keep)    units permuted, samples inside as stored  some batches
//   in_memory  G samples or files  units permuted and dealt into rounds,     its part of the round,
//                                  samples permuted over each round          read by all ranks
//   listed     1 sample            the caller's                              some batches
//
// `grouped` is the asynchronous I/O strategy of Lee et al. (paper 003, III-A), `in_memory` the
// entropy-aware opportunistic order of Zhu et al. (DeepIO, paper 004, III-C), `listed` its ordered
// mode. Batches of B are shared by P ranks, n_p = s_(p+1) - s_p to rank p, s_p = floor(p * B / P):
//
//   grouped: rank p has units floor(p * M / P).. of the permuted M, and takes n_p samples a time
//     list   |unit 7  |unit 2  |unit 5  |unit 0  |unit 6  |unit 1 ...
//            |rank 0                    |rank 1               ...
//   the others: a batch is B samples of the list in a row, rank p takes n_p of them from s_p on
//     list   |r0 |r1 |r2 |r3 |r0 |r1 |r2 |r3 |r0 ...
//            |batch 0        |batch 1        |
//
// The end of the list. All ranks always have the same number of iterations. The last r samples of
// a list that is shared batch by batch are shared as a batch is: from floor(s_p * r / B) on.
//   exact  a rank that has run out takes less, in the end nothing
//   drop   iterations that any rank could not fill are left out
//   pad    a rank that has run out goes back over its own samples, last first, as repeats
//   wrap   it takes the epoch's first samples instead, each rank the next ones, as repeats
// A rank that has no samples of its own wraps also under `pad`.
//
// Data reuse k (Pumma's dissertation, paper 002, 8.4.1): what is in memory (a unit; a round; the
// batches of a window) is delivered k times, in a new order each time, before it is replaced. An
// epoch is then k * N deliveries and still reads each sample once. The scope tells among which
// ranks the samples are recombined: each rank its own, the ranks of a node, or all.
//
// Resume. `done` tells what each set of ranks took of this epoch before: the rest of their list, in
// order, is a list too, and dealt anew; grouped orders then also cut inside a unit, so that every
// rank gets its share. It all works point by point: nothing is ever listed but ranks, and units
// where they differ in size.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "forebay/order.hpp"

namespace forebay {

/// Which sample goes to which rank at which iteration: StridedOrder, or an order that is new in
/// every epoch.
enum class OrderName : std::uint8_t { strided, grouped, shuffled, in_memory, listed };
enum class ReuseScope : std::uint8_t { process, node, global };

std::string_view to_string(OrderName order);
std::string_view to_string(ReuseScope scope);

/// Numbers that the caller keeps; shared, so that copies of options cost nothing.
using SharedNumbers = std::shared_ptr<const std::vector<std::uint64_t>>;

/// The part of options that is about orders. A loader fills in `entries`, `ranks`, `bounds` and
/// `ranks_per_node`, which its data set and communicator say.
struct OrderOptions {
  OrderName order = OrderName::strided;
  /// N, at most 2^48. Required.
  std::uint64_t entries = 0;
  int ranks = 1;
  /// Samples in a global batch, over all ranks; at least one a rank, at most 2^32. Required.
  std::uint64_t batch = 0;
  /// C, of strided: for how many iterations a rank has one stretch of the data. 1 keeps Caffe's
  /// order; larger values mean larger reads of several nodes and a different (but still fixed)
  /// order. 0 = what the strategy says: 1, or automatic_coalesce() of the data set, batch and
  /// ranks, the same on every machine. What was chosen is kept in state().
  std::uint64_t coalesce = 0;
  /// Of the run: the same seed gives the same orders, each epoch its own. Also for Sample::seed.
  std::uint64_t seed = 0;
  /// If not given: exact. In a loader's strided order, giving it is refused without `epochs`.
  std::optional<OrderEnd> end;
  /// Samples a unit, for `grouped` and `in_memory`. 0 for `in_memory`: what fills a round with
  /// about 256 units. Larger units are read by fewer, larger requests; smaller ones shuffle better.
  std::uint64_t group = 0;
  /// Instead of `group`: first sample of each unit (file), ascending from 0, and N behind the last.
  SharedNumbers bounds;
  /// k neighbours of the data set that `shuffled` keeps together; 0: all, as they are stored.
  std::uint64_t keep = 1;
  /// R, above 0 and at most 1: the part of the data set that `in_memory` holds in one round.
  double ratio = 1;
  /// For `listed`: sample ids below N in the order of delivery; any number of them, repeats
  /// allowed.
  SharedNumbers ids;
  /// Where a loader finds them, if they are not given: a file of decimal numbers between white
  /// space, read by rank 0.
  std::string list;
  /// How often a sample is delivered before it is replaced; 1 to 2^20.
  std::uint64_t reuse = 1;
  ReuseScope reuse_scope = ReuseScope::process;
  /// Ranks of a node, which follow each other, for the scope `node`; 0 = all.
  int ranks_per_node = 0;
  /// Iterations whose samples a rank holds together, for `shuffled` and `listed`. Without reuse it
  /// changes the buffers alone, not the order: longer ones find more neighbours in the file, and
  /// take more memory.
  std::uint64_t window = 8;

  /// What `end` says or leaves to its default.
  OrderEnd order_end() const { return end.value_or(OrderEnd::exact); }
  /// Throws usage naming the option that is wrong and what is allowed.
  void validate() const;
  /// Text of everything but ranks and batch that shapes the order: two runs continue each other
  /// only where it is the same. (Lists and bounds appear as a hash.)
  std::string identity() const;
};

/// One sample for one rank.
struct Draw {
  std::uint64_t sample = 0;
  std::uint64_t position = 0;  ///< in the epoch's list, wherever the run was resumed; 0..size()-1
  bool repeat = false;         ///< fills a batch at the end, by `pad` or `wrap`
  bool operator==(const Draw&) const = default;
};

/// What a rank takes at one iteration.
struct Share {
  std::uint64_t first = 0;  ///< its first draw
  std::uint64_t count = 0;
  std::uint64_t valid = 0;  ///< those that are no repeats: the first ones
};

/// What a rank reads from storage, and which of its draws that serves. While the draws of one
/// buffer are served, the next one is loaded.
struct Buffer {
  std::vector<Run> loads;   ///< sample ids in a row, in memory one behind the other
  std::uint64_t first = 0;  ///< draws of the rank, from here on
  std::uint64_t count = 0;
  /// Draws may lie in what other ranks have loaded: see EpochOrder::place(). Such a buffer has the
  /// same `round` on all ranks, and some ranks may have nothing to load.
  bool shared = false;
  std::uint64_t round = 0;
};

/// Where a sample is in memory: slot `slot` of what `rank` has loaded for its buffer.
struct Place {
  int rank = 0;
  std::uint64_t slot = 0;
  bool operator==(const Place&) const = default;
};

/// One epoch. Immutable and cheap to copy; safe from any thread. Methods are O(1), or O(log P) a
/// segment in a resumed grouped epoch, or O(log units) with bounds; construction is O(P) for
/// grouped orders, O(units) with bounds.
class EpochOrder {
 public:
  /// `done`: what was taken of this epoch already, oldest first. If the last of them has the same
  /// ranks and batch, this goes on identically, from first_iteration() on. Throws usage: options
  /// that do not validate, or more iterations done than there are.
  EpochOrder(OrderOptions options, std::uint64_t epoch, const std::vector<Segment>& done = {});

  const OrderOptions& options() const;
  std::uint64_t epoch() const;
  /// Deliveries of the whole epoch: N (or the list's length) times the reuse.
  std::uint64_t size() const;

  /// Iterations of these ranks, the same for all of them. Can be 0 where a resumed epoch has
  /// nothing left, or only what `drop` leaves out.
  std::uint64_t steps() const;
  /// Where to go on; steps() at the end of the epoch.
  std::uint64_t first_iteration() const;
  /// Of these ranks: deliveries that `drop` leaves out; samples that `pad` or `wrap` add.
  std::uint64_t dropped() const;
  std::uint64_t repeated() const;

  /// `iteration` below steps().
  Share share(int rank, std::uint64_t iteration) const;
  /// Which delivery of what is in memory `iteration` belongs to, counted over the epoch: `reuse` of
  /// them for each filling (a unit, a round, a window), so the remainder by `reuse` says how often
  /// its samples were delivered before. One number for all ranks: that of the first sample that
  /// rank 0 takes, or of its last one where it has run out. Never falls from one iteration to the
  /// next on the ranks that have begun the epoch.
  std::uint64_t pass(std::uint64_t iteration) const;
  /// How many draws `rank` has over all iterations.
  std::uint64_t draws(int rank) const;
  /// Draw number `draw` of `rank`, below draws(rank).
  Draw draw(int rank, std::uint64_t draw) const;
  /// The same for the draws from `first` on, one for each place of `to`: cheaper a draw.
  void draws(int rank, std::uint64_t first, std::span<Draw> to) const;

  /// What `rank` loads, one buffer after the other, for the iterations from `iteration` on; nothing
  /// when there is nothing left. A shared buffer may serve no draw of this rank.
  std::optional<Buffer> first_buffer(int rank, std::uint64_t iteration) const;
  std::optional<Buffer> next_buffer(int rank, const Buffer& buffer) const;
  /// The buffer that serves `draw`, and where in memory its sample then is.
  Buffer buffer(int rank, std::uint64_t draw) const;
  Place place(int rank, std::uint64_t draw) const;
  /// Whether the only round of `in_memory` holds the whole data set: each rank loads the same in
  /// every epoch, hence once a run.
  bool resident() const;

 private:
  class Parts;
  std::shared_ptr<const Parts> parts_;
};

/// Where a run stands: `done` belongs to `epoch`.
struct OrderProgress {
  std::uint64_t epoch = 0;
  std::vector<Segment> done;
  bool operator==(const OrderProgress&) const = default;
};

/// The same after `iterations` more on the ranks and batch of `options`, over the ends of epochs:
/// an epoch that is finished is never resumed. O(epochs). Throws as EpochOrder.
OrderProgress advance(const OrderOptions& options, OrderProgress from, std::uint64_t iterations);

}  // namespace forebay
