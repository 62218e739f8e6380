// Distributed-memory reading, strategy lmm-dm (thesis of S. Pumma, chapter 4): no root walks over
// the records of others, and all bring their pages into memory at the same time.
//
//   guess    touch the pages that this root's records probably lie on     all roots at once
//   walk     from the cursor that the root before has handed on to the end of the own part, over
//            pages that are in memory by now, and hand the cursor on      one root after the other
//   read     copy the records into the stage                              all roots at once
//   learn    where the part was, for the next guess
//
// A window is read whole: its parts by iteration have no order in which a cursor could travel.
#pragma once

#include <vector>

#include "format/lmdb/lmdb_source.hpp"
#include "read/piece_reader.hpp"
#include "read/stage.hpp"
#include "read/turns.hpp"
#include "read/walk/hand_off.hpp"
#include "read/walk/speculation.hpp"

namespace forebay {

/// What a HandoffReader works with; all references outlive it.
struct HandoffParts {
  lmdb::LmdbSource& source;
  HandOffPlan plan;
  int me = 0;  ///< number among all roots
  CursorLink link;
  GiveUp give_up;
};

class HandoffReader final : public PieceReader {
 public:
  HandoffReader(HandoffParts parts, const WindowPlan& plan, Stage& stage, int root, Turns& turns);

  void read(const WindowPart& part, const std::optional<WindowPart>& next) override;
  void check_unchanged() override { parts_.source.check_unchanged(); }
  ReadTotals totals() const override;
  void leave() override { parts_.link.leave(); }

 private:
  /// A leg of this window, with the cursor on its first record.
  struct Begun {
    Leg leg;
    lmdb::Cursor start;
    GuessedPages guess;
  };

  void touch_guesses(std::vector<Begun>& legs);
  GuessedPages guess(const Leg& leg);
  void walk(Begun& leg);
  lmdb::Cursor start_of(const Leg& leg);
  void copy(std::uint64_t window, const Begun& leg, std::span<const Piece> pieces);
  void learn(const Begun& leg, std::span<const PageRange> used);
  void count_touched(std::span<const PageRange> touched, std::span<const PageRange> used);
  std::uint64_t sample(std::uint64_t position) const { return plan_.order().sample(position); }

  HandoffParts parts_;
  const WindowPlan& plan_;
  Stage& stage_;
  int root_;
  Turns& turns_;
  Speculation speculation_;
  lmdb::Cursor kept_;                ///< handed on to this root itself
  std::uint64_t touched_bytes_ = 0;  ///< that the source does not count
  ReadTotals totals_;
};

}  // namespace forebay
