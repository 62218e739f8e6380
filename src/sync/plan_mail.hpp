// Messages between the progress threads of ranks that follow plans: few, and none while a plan is
// followed.
//
//   record    what a rank has started in a step                        -> rank 0
//   proposal  a plan, and after which step it was made                 rank 0 -> all
//   accepted  the plan was received; only its begin is left to agree on -> rank 0
//   leave     the plan no longer fits; how many transfers were issued   -> all
//   neutral   the transfers that a rank has issued without its tensors  -> all
//
// Ranks negotiate in even epochs and follow a plan in odd ones. All change epochs at the same
// point, but not at the same time: letters of later epochs are kept, those of earlier ones are
// dropped.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <vector>

#include "forebay/communicator.hpp"
#include "forebay/sync.hpp"

namespace forebay {

enum class LetterKind : std::uint8_t { record, proposal, accepted, leave, neutral };

struct Letter {
  int from = 0;
  LetterKind kind = LetterKind::record;
  std::uint64_t epoch = 0;
  std::vector<std::byte> content;
};

/// Of the progress thread.
class PlanMail {
 public:
  /// Collective: takes a part of `comm` for itself.
  PlanMail(Communicator& comm, SyncStatistics& statistics);

  int rank() const { return comm_->rank(); }
  int ranks() const { return comm_->size(); }

  /// Also to oneself.
  void send(int to, LetterKind kind, std::uint64_t epoch, std::span<const std::byte> content);
  void send_all(LetterKind kind, std::uint64_t epoch, std::span<const std::byte> content);
  /// What has come for this epoch. Throws usage for a rank that leaves a plan which this one has
  /// exchanged for another.
  std::vector<Letter> receive(std::uint64_t epoch);

 private:
  std::shared_ptr<Communicator> comm_;
  SyncStatistics& statistics_;
  std::deque<Letter> letters_;
};

}  // namespace forebay
