// The turns of one root: its part in staggering, with the time that it waited.
#pragma once

#include <cstdint>
#include <memory>

#include "core/clock.hpp"
#include "forebay/error.hpp"
#include "read/piece_reader.hpp"
#include "read/stagger.hpp"

namespace forebay {

/// Used by the reading thread of one root. All roots must take their turns in the same steps.
class Turns {
 public:
  /// `give_up` ends a wait: it is asked now and then.
  Turns(std::unique_ptr<Stagger> stagger, GiveUp give_up)
      : stagger_(std::move(stagger)), give_up_(std::move(give_up)) {}

  /// The right to read, until it is destroyed. Every root takes one for each part of a window, also
  /// where it has nothing to read.
  class Turn : public StaggerTurn {
   public:
    /// Waits for the next turn. Throws cancelled when that was given up, communication.
    explicit Turn(Turns& turns) : Turn(turns, Stopwatch(turns.waited_seconds_)) {
      if (granted()) return;
      throw Error(ErrorKind::cancelled, "the wait for a turn to read was given up");
    }

   private:
    Turn(Turns& turns, const Stopwatch&)
        : StaggerTurn(*turns.stagger_, turns.next_++, turns.give_up_) {}
  };

  /// Whether a turn never has to be waited for.
  bool unlimited() const { return stagger_->unlimited(); }
  /// This root takes no more turns: nobody waits for it.
  void leave() { stagger_->leave(); }
  void add_to(ReadTotals& totals) const {
    totals.turn_seconds = waited_seconds_;
    totals.roots_at_once = stagger_->at_once();
    totals.found = stagger_->found();
    // What never changes is in words since the opening: no text is made for each window.
    if (totals.found != KnownStagger()) totals.turns = stagger_->describe();
  }

 private:
  std::unique_ptr<Stagger> stagger_;
  GiveUp give_up_;
  std::uint64_t next_ = 0;
  double waited_seconds_ = 0;
};

}  // namespace forebay
