// The way of the progress thread through its plan: buffer after buffer, round after round.
//
//   round 0   [a b c] [d e]        round 1   [a b c] [d e]        ...
//              issue 0  issue 1               issue 2  issue 3
//
// A run may begin in the middle of a step, some tensors of which were summed before: they are left
// out of its first round, on all ranks alike. Buffers of which nothing is left are then no issue.
//
// Every rank issues the same transfers in the same order. That is all they have to agree on.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <set>
#include <string>

#include "forebay/sync_agreement.hpp"
#include "sync/slots.hpp"

namespace forebay {

/// Of the progress thread.
class PlanRun {
 public:
  /// `left_out`: names that round 0 does without; not all of the plan's.
  PlanRun(std::shared_ptr<Slots> slots, const std::set<std::string>& left_out);

  Slots& slots() { return *slots_; }
  const PlanTable& table() const { return *slots_->table(); }

  /// Whether all tensors of the next buffer are there.
  bool ready() const;
  /// The next transfer, with what is in its slots; empty where a request is withdrawn just now.
  std::optional<Transfer> issue();
  /// The next transfer without requests: neutral elements instead of what this rank has.
  Transfer issue_neutral();

  std::uint64_t issued() const { return issued_; }
  /// Whole rounds that were issued.
  std::uint64_t rounds() const { return rounds_; }
  /// A tensor that the next buffer waits for; for messages.
  std::string missing() const;

 private:
  const Slots::Left& left() const;
  Transfer transfer_of(std::vector<std::shared_ptr<Request>> requests) const;
  bool nothing_left() const;
  void advance();
  void settle();

  std::shared_ptr<Slots> slots_;
  std::vector<Slots::Left> left_out_;  ///< of round 0, by buffer; empty: nothing
  std::uint32_t buffer_ = 0;
  std::uint64_t issued_ = 0;
  std::uint64_t rounds_ = 0;
};

}  // namespace forebay
