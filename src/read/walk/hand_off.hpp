// The cursor of one root is the start of the next (thesis of S. Pumma, section 4.2.1): instead of
// every root walking the tree from its first record, each walks its own part and hands its cursor
// on.
//
//   window 0                                window 1
//   | root 0: leg | root 1: leg | root 2 |  | root 0 | root 1 | ...
//          \---cursor-->\---cursor-->\---cursor-->\ ...
//
// A leg is what a root reads without a gap in positions. The first leg of a run has no one before
// it: its root seeks. At sample 0 nobody needs a cursor: the tree knows where it begins. Where a
// window is cut short, legs have gaps between them, which the receiver walks over; behind a gap
// that holds sample 0 it begins there. The samples of a leg have gaps where its positions stand for
// what an earlier run left of a window (forebay/order.hpp); they grow there as well.
//
// The planning functions are pure. A root first walks a leg to its end and sends the cursor on, and
// reads afterwards, in whatever order: so nobody waits for another one's reading.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "forebay/communicator.hpp"
#include "format/lmdb/tree.hpp"
#include "read/root_map.hpp"

namespace forebay {

/// Instead of a root number.
inline constexpr int kNobody = -1;

/// A stretch of positions of one root, and how a cursor comes there and goes on.
struct Leg {
  std::uint64_t position = 0;
  std::uint64_t count = 0;
  int from = kNobody;  ///< who sends the cursor at the start; nobody: seek, or begin at sample 0
  int to = kNobody;    ///< who gets the cursor at the end; nobody: not needed
  bool operator==(const Leg&) const = default;
};

/// What meets the legs of a window at its two ends.
struct WindowEnds {
  int before = kNobody;               ///< who has the last leg of the window before
  std::uint64_t before_position = 0;  ///< where that leg ends
  int after = kNobody;                ///< who has the first leg of the window after
  std::uint64_t after_position = 0;   ///< where that leg begins
  bool operator==(const WindowEnds&) const = default;
};

/// The pieces of root r in a window are `roots`[r], in any order, and do not overlap with those of
/// others. Returns the legs of root `me`, in ascending position. from or to may be `me` itself:
/// then there is nothing to send. Linear in the pieces where these are sorted.
std::vector<Leg> legs_of(const StridedOrder& order, std::span<const std::vector<Piece>> roots,
                         int me, const WindowEnds& ends);

/// The same from what all roots read. Immutable; safe from any thread.
class HandOffPlan {
 public:
  /// Iterations [first, end) are delivered; windows begin at multiples of C, and the first one is
  /// read whole.
  HandOffPlan(std::shared_ptr<const RootMap> map, std::uint64_t first, std::uint64_t end);

  std::uint64_t first_window() const { return first_window_; }
  std::uint64_t end_window() const { return end_window_; }
  /// The legs of `root` in `window`. Linear in the pieces of all roots.
  std::vector<Leg> legs(int root, std::uint64_t window) const;

 private:
  using Pieces = std::vector<std::vector<Piece>>;
  Pieces pieces_of_all(std::uint64_t window) const;

  std::shared_ptr<const RootMap> map_;
  std::uint64_t end_;
  std::uint64_t first_window_;
  std::uint64_t end_window_;
};

/// Sends and receives cursors. Used by one thread of each root.
class CursorLink {
 public:
  /// `roots` carries cursors alone. A wait for one lasts at most `limit`.
  CursorLink(std::shared_ptr<Communicator> roots, std::chrono::milliseconds limit)
      : roots_(std::move(roots)), limit_(limit), has_left_(roots_->size()) {}

  /// `cursor` stands on `sample`, or behind the last record. Returns at once.
  void send(int to, const lmdb::Cursor& cursor, std::uint64_t sample);
  /// Tells all others that no cursor comes from this root any more. Returns at once.
  void leave();
  /// The cursor of `from`, and the sample that it stands on: `sample` or, where the leg before ends
  /// in a gap, one before it. Empty when `give_up` said so; a cursor that is not valid once `from`
  /// has left. The cursor is checked by the Tree that uses it.
  /// Throws communication: past the limit, or for something that is no cursor.
  std::optional<lmdb::Cursor> receive(int from, std::uint64_t sample, const GiveUp& give_up);

 private:
  std::shared_ptr<Communicator> roots_;
  std::chrono::milliseconds limit_;
  std::vector<bool> has_left_;  ///< by root
};

}  // namespace forebay
