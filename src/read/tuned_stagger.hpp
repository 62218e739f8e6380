// Staggering that finds its own n in the first turns.
//
//   turn t is over:  root r --- bytes, seconds ---> root 0: StaggerTuner
//   before turn t+1: root r <-- n, is it final? --- root 0
//
// Not of the first turn, in which caches and buffers are empty: all roots take it as they come.
// From the second on, as long as n is tried out, no root begins a turn before all have ended the
// one before: n changes while nobody reads, at the price of servers that idle for a moment. After
// the final n there are no such messages any more.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "read/stagger.hpp"
#include "read/ticket_stagger.hpp"
#include "read/token_stagger.hpp"

namespace forebay {

/// How many roots should read at once? One turn each: all R, then as many as there are servers (the
/// square root of R where that is not known, or no fewer); where that is no slower, half of it as
/// well: servers that keep few streams may gain nothing before. What is slower ends the search, so
/// it costs little where holding roots back does not pay.
/// Pure: the choice depends on the figures alone.
class StaggerTuner {
 public:
  /// A turn that reads far more than those before it does not count, nor do they: the search begins
  /// anew. One that reads nothing ends it: all read at once.
  explicit StaggerTuner(int roots, int servers = 0);

  /// For the next turn.
  int group() const { return settled() ? best_ : groups_[trial_]; }
  bool settled() const { return trial_ == groups_.size(); }

  /// What all roots together have read in a turn, and how long the slowest was waiting and reading.
  void add_turn(std::uint64_t bytes, double seconds);
  /// Ends the trials: all read at once.
  void stop();

 private:
  std::vector<int> groups_;    ///< to try, descending
  std::uint64_t largest_ = 0;  ///< that a turn has read
  std::size_t trial_ = 0;
  int best_;
  double best_rate_ = 0;
};

class TunedStagger final : public Stagger {
 public:
  /// Collective over `roots`; see make_stagger.
  TunedStagger(Communicator& roots, const StaggerOptions& options, ProgressThread* progress);
  ~TunedStagger() override;

  bool acquire(std::uint64_t turn, const GiveUp& give_up) override;
  void release(std::uint64_t bytes) override;
  void leave() override;
  std::string describe() const override;
  int at_once() const override { return final_ ? group_.load() : 0; }
  KnownStagger found() const override;
  bool unlimited() const override { return final_ && group_ == comm_->size(); }

 private:
  struct Report;
  struct Choice;

  Stagger& inner();
  bool exchange(std::uint64_t turn, const GiveUp& give_up);
  bool collect(const GiveUp& give_up);
  void tell_all();
  void use(const Choice& choice, std::uint64_t turn);

  std::shared_ptr<Communicator> comm_;  ///< for reports and choices
  StaggerOptions options_;
  std::unique_ptr<TokenStagger> token_;  ///< one of these two
  std::unique_ptr<TicketStagger> ticket_;
  StaggerTuner tuner_;          ///< root 0
  std::vector<bool> has_left_;  ///< root 0
  std::uint64_t bytes_ = 0;     ///< of the last turn
  std::int64_t began_ns_ = 0;
  double seconds_ = 0;
  bool begun_ = false;      ///< the first turn has ended
  bool to_report_ = false;  ///< a turn of the trials has ended
  bool left_ = false;
  std::atomic<bool> final_ = false;
  std::atomic<int> group_;
};

}  // namespace forebay
