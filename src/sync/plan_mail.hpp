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

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "comm/messages.hpp"
#include "forebay/communicator.hpp"
#include "forebay/error.hpp"
#include "forebay/sync.hpp"
#include "sync/plan_run.hpp"

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
  PlanMail(Communicator& comm, SyncStatistics& statistics)
      : comm_(comm.split(0, comm.rank())), statistics_(statistics) {
    comm_->carry_messages();
  }

  int rank() const { return comm_->rank(); }
  int ranks() const { return comm_->size(); }

  /// Also to oneself.
  void send(int to, LetterKind kind, std::uint64_t epoch, std::span<const std::byte> content) {
    if (to == rank()) {
      letters_.push_back({to, kind, epoch, {content.begin(), content.end()}});
      return;
    }
    std::vector<std::byte> message = encode(kind, epoch);
    message.insert(message.end(), content.begin(), content.end());
    comm_->send(to, message);
    ++statistics_.negotiations;
  }

  void send_all(LetterKind kind, std::uint64_t epoch, std::span<const std::byte> content) {
    for (int to = 0; to < ranks(); ++to) send(to, kind, epoch, content);
  }
  /// What has come for this epoch. Throws usage for a rank that leaves a plan which this one has
  /// exchanged for another.
  std::vector<Letter> receive(std::uint64_t epoch) {
    for (int from = 0; from < ranks(); ++from) {
      if (from == rank()) continue;
      while (const auto message = comm_->try_receive(from))
        letters_.push_back(open(from, *message));
    }
    std::vector<Letter> now;
    std::deque<Letter> later;
    for (Letter& letter : letters_) {
      if (letter.epoch == epoch) {
        now.push_back(std::move(letter));
      } else if (letter.epoch > epoch) {
        later.push_back(std::move(letter));
      } else if (letter.kind == LetterKind::leave) {
        throw Error(ErrorKind::usage,
                    fmt::format("rank {} started tensors while another graph was taken into use",
                                letter.from),
                    "start nothing during use_graph()");
      }
    }
    letters_ = std::move(later);
    return now;
  }

 private:
  static Letter open(int from, const std::vector<std::byte>& message) {
    MessageReader reader(message);
    Letter letter{.from = from};
    reader(letter.kind, letter.epoch);
    letter.content.assign(reader.rest().begin(), reader.rest().end());
    return letter;
  }

  std::shared_ptr<Communicator> comm_;
  SyncStatistics& statistics_;
  std::deque<Letter> letters_;
};

// How ranks leave a plan together, wherever each of them is in it, without a wrong sum:
//
//   rank 0   issued  1 2 3 4 5          leave(5) -->
//   rank 1   issued  1 2 3              <-- leave(3);  4 with its tensors, 5 without: neutral(5)
//
//   1. Whoever cannot follow the plan says to all how many transfers it has issued, and stops
//      issuing and handing out; so does whoever hears of it.
//   2. When all have said so, each issues what others have issued and it has not: with its tensors,
//      where they are all there, else with neutral elements, and tells all which.
//   3. When all transfers are complete and all have told, those that everybody issued with tensors
//      are handed out. What is left was not touched: its output is written at hand-out only.
//
// All ranks hand out the same transfers; whatever else was started, is negotiated.

/// Of the progress thread; one for each exit.
class PlanExit {
 public:
  /// Holds the line. `first`: the line's number of issue 0, if there was one.
  PlanExit(PlanMail& mail, std::uint64_t epoch, PlanRun& run, TransferLine& line,
           TransferLine::Number first, bool is_fallback)
      : mail_(mail), epoch_(epoch), run_(run), line_(line), first_(first) {
    line_.hold();
    mail_.send_all(LetterKind::leave, epoch_, encode(run_.issued(), is_fallback));
  }

  /// leave and neutral.
  void take(const Letter& letter) {
    if (letter.kind == LetterKind::leave) {
      std::uint64_t issued = 0;
      bool is_fallback = false;
      MessageReader reader(letter.content);
      reader(issued, is_fallback);
      most_ = std::max(most_, issued);
      is_fallback_ = is_fallback || is_fallback_;
      ++left_;
    } else if (letter.kind == LetterKind::neutral) {
      for (const auto issue : decode<std::vector<std::uint64_t>>(letter.content)) {
        neutral_.insert(issue);
      }
      ++told_;
    }
  }

  /// Does what can be done now. When it is over: requests that were issued and not handed out.
  std::optional<std::vector<std::shared_ptr<Request>>> step() {
    if (left_ < static_cast<std::size_t>(mail_.ranks())) return {};
    if (!caught_up_) catch_up();
    if (!all_told() || (most_ > 0 && line_.complete() < first_ + most_)) return {};
    std::vector<TransferLine::Number> without;
    for (const std::uint64_t issue : neutral_) without.push_back(first_ + issue);
    return line_.release(without);
  }

  /// Whether any rank leaves because the plan does not fit, and not to join or to close.
  bool is_fallback() const { return is_fallback_; }

 private:
  void catch_up() {
    std::vector<std::uint64_t> neutral;
    while (run_.issued() < most_) {
      const std::uint64_t issue = run_.issued();
      auto transfer = run_.ready() ? run_.issue() : std::nullopt;
      if (!transfer) {
        transfer = run_.issue_neutral();
        neutral.push_back(issue);
      }
      first_ = line_.start(std::move(*transfer)) - issue;
    }
    caught_up_ = true;
    mail_.send_all(LetterKind::neutral, epoch_, encode(neutral));
  }

  bool all_told() const { return told_ == static_cast<std::size_t>(mail_.ranks()); }

  PlanMail& mail_;
  std::uint64_t epoch_;
  PlanRun& run_;
  TransferLine& line_;
  TransferLine::Number first_;
  std::size_t left_ = 0;    ///< ranks that have said how far they are
  std::uint64_t most_ = 0;  ///< issued by any rank
  bool is_fallback_ = false;
  bool caught_up_ = false;
  std::size_t told_ = 0;             ///< ranks that have said what they issued without tensors
  std::set<std::uint64_t> neutral_;  ///< issues, of any rank
};

}  // namespace forebay
