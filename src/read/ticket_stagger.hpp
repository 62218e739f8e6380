// Staggering in the order in which roots come, by two common counters; see read/stagger.hpp.
//
//   acquire: ticket = drawn++            wait until ticket < finished + n
//   release: finished++
//
// A wait looks at `finished` the more rarely the more tickets are before it, so that many waiting
// roots do not keep rank 0 from reading. A ticket that was drawn in vain counts as finished at
// once.
#pragma once

#include <chrono>
#include <memory>
#include <string>

#include "read/stagger.hpp"

namespace forebay {

class TicketStagger final : public Stagger {
 public:
  /// Collective over `roots`; see make_stagger.
  TicketStagger(Communicator& roots, const StaggerOptions& options, ProgressThread* progress);
  ~TicketStagger() override;

  bool acquire(std::uint64_t turn, const GiveUp& give_up) override;
  void release(std::uint64_t bytes) override;
  void leave() override;
  int at_once() const override;
  std::string describe() const override;

  /// From the next turn on; by all roots, when none reads.
  void set_group(int group) { options_.group = group; }

 private:
  bool wait_for(std::uint64_t ticket, const GiveUp& give_up);
  void rest(std::chrono::microseconds length, const GiveUp& give_up);

  StaggerOptions options_;
  int roots_;
  std::unique_ptr<SharedCounter> drawn_;
  std::unique_ptr<SharedCounter> finished_;
  bool holding_ = false;
  bool free_ = false;  ///< rank 0 has left, and its counters with it: nobody waits any more
  // Last, so that they end before the counters that they serve.
  ProgressThread::Registration serve_drawn_;
  ProgressThread::Registration serve_finished_;
};

}  // namespace forebay
