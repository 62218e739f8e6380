// Who may read when: at most n of R roots at a time, so that the requests of many nodes do not
// turn the sequential reads of each into random ones at the servers (Pumma et al., TOPC 2019,
// section 4.6; thesis of S. Pumma, section 5.2.4).
//
//   none     everybody, always
//   token    roots form groups of n in file order; when label l of group g has read its part of a
//            turn it passes its token to label l of group g + 1, the last one to group 0 for the
//            next turn. Each label has one token that goes round its own ring:
//
//              R = 8, n = 3     label 0: 0 -> 3 -> 6 -> (next turn) 0 ...
//                               label 1: 1 -> 4 -> 7 -> 1 ...     label 2: 2 -> 5 -> 2 ...
//
//   ticket   in the order in which they come: whoever draws number k from a common counter reads
//            once more than k - n have finished
//   auto     token or ticket with the n that was fastest in the first turns (tuned_stagger.hpp),
//            which are not spent on a run of few turns
//
// A turn is a window. Every root calls acquire and release once a turn, in ascending turns, also
// where it has nothing to read. Staggering changes when data are read, never which.
//
// Why nobody waits for ever. A root asks for a turn once it has a free buffer, so a root that may
// read needs no other root to finish: reads are finite, and a StaggerTurn gives its place back
// however it ends. Tokens travel in the order (turn, place in the ring): the first root in that
// order that has not read yet has all buffers that it needs, since what it waits for lies before
// it. A root that leaves tells its neighbour; one that dies or fails is seen by give_up, where its
// failure has to be known before it leaves.
// Between acquire and release a root must not wait for another root that may come later: with
// `ticket` a hand-off cursor has to be received before the turn is acquired.
//
// How many read at once: n. After a root has left before the end of the data, more may: with
// `token` the successor of that root no longer waits, and is ahead of its ring by as many turns as
// it has buffers; with `ticket` everyone reads at once after the root that holds the counters has
// left, and one more for each root that gave up waiting.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "comm/progress_thread.hpp"
#include "core/non_copyable.hpp"
#include "forebay/communicator.hpp"
#include "forebay/options.hpp"

namespace forebay {

/// Used by one thread (the reading thread of a root). Destruction leaves.
class Stagger : private NonCopyable {
 public:
  virtual ~Stagger() = default;

  /// Waits until this root may read its part of `turn`. False when `give_up` said so: then there is
  /// nothing to release, and the root should leave. The first turn may be any number, the same for
  /// all roots.
  /// Throws communication past the time limit, or when roots are at different turns.
  virtual bool acquire(std::uint64_t turn, const GiveUp& give_up) = 0;
  /// Lets the next one read. `bytes` is what was read in this turn; `auto` compares it.
  virtual void release(std::uint64_t bytes) = 0;
  /// Ends this root's part for good, at any time, without holding anybody up. Idempotent, and
  /// needed only where the destructor comes late.
  virtual void leave() = 0;
  /// Now; safe from any thread.
  virtual std::string describe() const = 0;
  /// How many roots may read at once now, if that is settled; else 0. Safe from any thread.
  virtual int at_once() const { return 0; }
  /// What `auto` has settled on; zeros before, and of the others. Safe from any thread.
  virtual KnownStagger found() const { return {}; }
  /// Whether everybody may read at any time.
  virtual bool unlimited() const { return false; }
};

struct StaggerOptions {
  static constexpr std::uint64_t kNoEnd = ~std::uint64_t{0};
  static constexpr int kAuto = 0;

  StaggerBy by = StaggerBy::none;
  int group = kAuto;                ///< n, roots that read at once
  std::uint64_t end_turn = kNoEnd;  ///< no root reads in this turn or later
  // For `auto`, as root 0 has them.
  std::uint64_t turns = kNoEnd;  ///< about so many will be taken
  KnownStagger known;
  int servers = 0;  ///< of the file system; 0: not known
  /// For one wait. Other roots may wait for buffers, so it covers what consumers compute as well.
  std::chrono::milliseconds limit{std::chrono::minutes(10)};
};

/// The same options on every rank of `roots`. Where the counter needs serving, `progress` does it
/// at rank 0 (may be null: then tickets are served only while rank 0 waits itself). `progress`
/// outlives the result. Collective over `roots`, which may be used for other things afterwards.
std::unique_ptr<Stagger> make_stagger(Communicator& roots, const StaggerOptions& options,
                                      ProgressThread* progress);

/// `auto` looks for a number only in runs of at least so many turns: in what it tries it may lose
/// half a turn, and 3 % of a run is what looking may cost.
inline constexpr std::uint64_t kTurnsWorthLooking = 20;

/// Whether `known` was found among as many roots.
inline bool is_of(const KnownStagger& known, int roots) {
  return known.roots == roots && known.at_once > 0;
}

/// One turn of a root; gives its place back however it ends.
class StaggerTurn : private NonCopyable {
 public:
  StaggerTurn(Stagger& stagger, std::uint64_t turn, const GiveUp& give_up)
      : stagger_(stagger.acquire(turn, give_up) ? &stagger : nullptr) {}
  /// A failure to release is logged.
  ~StaggerTurn();

  /// False when the wait was given up: nothing may be read.
  bool granted() const { return stagger_ != nullptr; }
  /// Adds to what release() is told.
  void count(std::uint64_t bytes) { bytes_ += bytes; }
  /// Gives the place back now. Throws communication.
  void end();

 private:
  Stagger* stagger_;
  std::uint64_t bytes_ = 0;
};

}  // namespace forebay
