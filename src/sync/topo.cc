// Transfers in the order of a plan: nothing is compared, and the thread sleeps until the tensors of
// the next buffer are there (paper 002, 6.3.4).
//
//   negotiating --plan known to all--> following --does not fit--> leaving --> negotiating
//    epoch 0                            epoch 1                                 epoch 2
//
//   negotiating   the first step, and whatever a plan does not know: broadcasts, gatherings,
//                 barriers, joins. Each rank records its steps; rank 0 makes a plan of them
//                 (plan_maker.hpp), or a graph was given to all ranks.
//   following     see plan_run.hpp. No messages.
//   leaving       see plan_mail.hpp. A plan does not fit when something comes that it does not
//                 know, when a step ends in which something is missing, or when nothing moves.
//
// All ranks begin to follow a plan after the same cycle of the negotiation: every rank enters a
// barrier into it as soon as it has the plan, rank 0 after all others have.
//
// A join on its way keeps ranks negotiating; when all have joined they go back to the last plan.
#include <fmt/format.h>

#include <algorithm>
#include <condition_variable>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "comm/messages.hpp"
#include "core/clock.hpp"
#include "core/log.hpp"
#include "forebay/sync_agreement.hpp"
#include "sync/intake.hpp"
#include "sync/negotiation.hpp"
#include "sync/plan_mail.hpp"
#include "sync/plan_maker.hpp"
#include "sync/plan_run.hpp"

namespace forebay {
namespace {

using std::chrono::nanoseconds;

/// How often a rank looks whether others leave the plan: an eighth of the time since something has
/// moved, between these, so that a process that does other things for a while pays next to nothing.
constexpr std::chrono::milliseconds kShortestLook{50};
constexpr std::chrono::milliseconds kLongestLook{250};
/// Between two looks for the letters of ranks that leave the plan, too.
constexpr std::chrono::microseconds kLeavingLook{100};
/// A look for letters asks MPI once for every rank. While a plan is followed there hardly ever are
/// any, and a thread that waits for a sum looks often.
constexpr std::chrono::milliseconds kFollowingLook{1};

std::int64_t ns(nanoseconds duration) { return duration.count(); }

class Topo final : public Agreement {
 public:
  /// Collective.
  explicit Topo(const AgreementContext& context)
      : context_(context),
        plans_(*context.comm, context.options.fusion_bytes),
        negotiation_(context),
        intake_(negotiation_),
        mail_(*context.comm, context.statistics),
        maker_(context.comm->size(), context.options.fusion_bytes),
        patience_(std::min(context.options.plan_patience, context.options.stall_warning)) {}

  bool submit(std::shared_ptr<Request> request) override {
    return intake_.submit(std::move(request));
  }
  bool end_step() override { return intake_.end_step(); }
  /// Nothing may be on its way on this rank.
  void use_graph(const Graph& graph, std::span<const std::string> fetches) override {
    std::unique_lock lock(mutex_);
    // Or a rank that leaves its plan would wait for others that have already changed theirs.
    stays_ = true;
    changed_.wait(lock, [this] { return !leaving_ || failure_; });
    lock.unlock();
    Table table;
    try {
      table = plans_.of(graph, fetches);
    } catch (...) {
      lock.lock();
      stays_ = false;
      throw;
    }
    lock.lock();
    wanted_ = table;
    ++graphs_;
    if (context_.wake) context_.wake();
    changed_.wait(lock, [this] { return wanted_ == nullptr || failure_; });
    stays_ = false;
    if (failure_) throw Error(*failure_);
  }

  Rest step() override {
    intake_.reclaim();
    read_mail();
    if (exit_ != nullptr) return leave_on();
    return run_ != nullptr ? follow() : negotiate();
  }

  bool closed() const override { return negotiation_.closed(); }
  void fail(const Error& error) override {
    negotiation_.fail(error);
    const std::lock_guard lock(mutex_);
    failure_ = error;
    changed_.notify_all();
  }

  std::string explain() const override {
    const std::lock_guard lock(mutex_);
    return explanation_;
  }

 private:
  using Table = std::shared_ptr<const PlanTable>;

  /// A plan that is to be followed when its barrier is done.
  struct Coming {
    Table table;
    PlanStart start;
    std::string barrier;
    std::shared_ptr<SyncHandle::State> state;  ///< of the barrier; null: not entered yet
  };

  // Negotiating.
  Rest negotiate() {
    const Rest rest = negotiation_.step();
    if (negotiation_.closed()) return rest;
    intake_.count(negotiation_.take_without());
    for (const StepRecord& record : intake_.take_records()) {
      mail_.send(0, LetterKind::record, epoch_, encode(record));
    }
    take_graph();
    if (!negotiation_.between_cycles()) return rest;
    go_on_after_join();
    const bool begins = run_ != nullptr || begin_agreed(recorded_) || begin_agreed(given_);
    return begins ? Rest::zero() : rest;
  }

  void take_record(const Letter& letter) {
    const auto proposal = maker_.take(letter.from, decode<StepRecord>(letter.content), last_.get());
    if (!proposal || recorded_ || wanted() != nullptr) return;
    mail_.send_all(LetterKind::proposal, epoch_, encode(*proposal));
  }

  void propose(const Letter& letter) {
    PlanProposal proposal = decode<PlanProposal>(letter.content);
    // A plan that is used again keeps its table.
    const bool known = last_ != nullptr && last_->plan().digest == proposal.plan.digest;
    recorded_.emplace();
    recorded_->table = known ? last_ : std::make_shared<const PlanTable>(std::move(proposal.plan));
    recorded_->start = std::move(proposal.start);
    recorded_->barrier = fmt::format("{} {}.{}", kPlanPrefix, epoch_, proposals_++);
    enter_barrier(recorded_);
  }

  void take_graph() {
    const Table table = wanted();
    if (table == nullptr || given_) return;
    given_.emplace();
    given_->table = table;
    given_->barrier = fmt::format("{} of graph {}", kPlanPrefix, graphs_);
    enter_barrier(given_);
  }

  /// Rank 0 comes last: when the barrier is done, no rank can be without the plan, not even one
  /// that has joined and is not waited for in negotiations.
  void enter_barrier(std::optional<Coming>& coming) {
    if (!coming || coming->state != nullptr) return;
    if (mail_.rank() != 0) {
      mail_.send(0, LetterKind::accepted, epoch_, encode(coming->barrier));
    } else if (accepted_[coming->barrier].size() + 1 < static_cast<std::size_t>(mail_.ranks())) {
      return;
    }
    coming->state = std::make_shared<SyncHandle::State>();
    negotiation_.submit(std::make_shared<Request>(Request{.operation = SyncOperation::barrier,
                                                          .tensor = {.name = coming->barrier},
                                                          .state = coming->state,
                                                          .submitted_ns = now_ns()}));
  }

  void accept(const Letter& letter) {
    const std::string barrier = decode<std::string>(letter.content);
    accepted_[barrier].insert(letter.from);
    if (recorded_ && recorded_->barrier == barrier) enter_barrier(recorded_);
    if (given_ && given_->barrier == barrier) enter_barrier(given_);
  }

  bool begin_agreed(std::optional<Coming>& coming) {
    if (!coming || coming->state == nullptr || !coming->state->done()) return false;
    const Coming agreed = *std::exchange(coming, std::nullopt);
    if (const auto left_out = intake_.follow(agreed.table, agreed.start)) {
      begin(agreed.table, *left_out, 1);
      return true;
    }
    // The other's barrier was taken back.
    for (auto* const other : {&recorded_, &given_}) {
      if (*other) (*other)->state = nullptr;
      enter_barrier(*other);
    }
    return false;
  }

  /// The join was done in the same cycle for all ranks: they need not agree on anything.
  void go_on_after_join() {
    const auto join = intake_.join();
    if (join == nullptr || !join->state->done()) return;
    intake_.forget_join();
    if (last_ != nullptr) {
      intake_.follow(last_, {});
      begin(last_, {}, 1);
      return;
    }
    intake_.start_anew();
    epoch_ += 2;
    recorded_.reset();
    given_.reset();
    accepted_.clear();
    maker_.clear();
  }

  void begin(Table table, const std::set<std::string>& left_out, std::uint64_t epochs) {
    epoch_ += epochs;
    run_ = std::make_unique<PlanRun>(intake_.slots(), left_out);
    recorded_.reset();
    given_.reset();
    accepted_.clear();
    maker_.clear();
    moved_ns_ = now_ns();
    if (std::exchange(last_, table) != table) {
      ++context_.statistics.plans;
      tell_of(table);
    }
    const std::lock_guard lock(mutex_);
    if (wanted_ == table) wanted_ = nullptr;
    changed_.notify_all();
  }

  void tell_of(const Table& table) {
    const std::lock_guard lock(mutex_);
    explanation_ = fmt::format("{} tensors in {} transfers, {}", table->tensors(),
                               table->plan().buffers.size(),
                               wanted_ == table ? "as the graph asks for" : "as a step has shown");
  }

  // Following.
  Rest follow() {
    if (change_graph()) return Rest::zero();
    // Looked at first: what a step has had before its end is then found to be ready.
    const std::uint64_t ended = intake_.steps_ended();
    while (run_->ready()) {
      auto transfer = run_->issue();
      if (!transfer) break;
      first_ = context_.line.start(std::move(*transfer)) - (run_->issued() - 1);
    }
    look_for_changes(ended);
    if (exit_ != nullptr) return Rest::zero();
    const auto look = std::chrono::duration_cast<Rest>(nanoseconds((now_ns() - moved_ns_) / 8));
    return std::clamp<Rest>(look, kShortestLook, kLongestLook);
  }

  /// Nothing is on its way on any rank, and all have issued the same.
  bool change_graph() {
    const Table table = wanted();
    if (table == nullptr) return false;
    intake_.follow(table, {});
    begin(table, {}, 2);
    return true;
  }

  void look_for_changes(std::uint64_t steps_ended) {
    if (intake_.has_strays()) {
      bool only_ends = false;
      const std::string stray = intake_.describe_strays(only_ends);
      leave(fmt::format("'{}' is not part of it", printable_key(stray)), !only_ends);
    } else if (steps_ended > run_->rounds()) {
      leave(fmt::format("a step has ended without '{}'", printable_key(run_->missing())), true);
    } else if (nothing_moves()) {
      leave(fmt::format("'{}' does not come", printable_key(run_->missing())), true);
      patience_ = std::min<nanoseconds>(2 * patience_, context_.options.stall_warning);
    }
  }

  /// Either tensors wait here for others that do not come, or other ranks do not issue what this
  /// one has: the negotiation finds out who misses what.
  bool nothing_moves() {
    const std::int64_t now = now_ns();
    const TransferLine& line = context_.line;
    const std::uint64_t mark = intake_.submitted() + run_->issued() + line.complete();
    if (mark != std::exchange(moved_mark_, mark)) moved_ns_ = now;
    const SyncOptions& options = context_.options;
    nanoseconds limit = patience_;
    if (!line.idle()) {
      limit = options.stall_warning;
      if (options.stall_limit.count() > 0)
        limit = std::min<nanoseconds>(limit, options.stall_limit);
    } else if (intake_.slots()->filled() == 0) {
      return false;
    }
    return now - moved_ns_ > ns(limit);
  }

  void leave(const std::string& reason, bool is_fallback) {
    {
      const std::lock_guard lock(mutex_);
      if (stays_ && !reason.empty()) return;
      leaving_ = true;
    }
    if (is_fallback) log(LogLevel::info, "the plan of transfers is left: {}", reason);
    intake_.stop();
    exit_ = std::make_unique<PlanExit>(mail_, epoch_, *run_, context_.line, first_, is_fallback);
  }

  // Leaving.
  Rest leave_on() {
    auto back = exit_->step();
    if (!back) return kLeavingLook;
    if (exit_->is_fallback()) ++context_.statistics.fallbacks;
    intake_.negotiate(std::move(*back));
    exit_.reset();
    run_.reset();
    ++epoch_;
    const std::lock_guard lock(mutex_);
    leaving_ = false;
    changed_.notify_all();
    return Rest::zero();
  }

  void read_mail() {
    const std::int64_t now = now_ns();
    if (run_ != nullptr && exit_ == nullptr && now < next_mail_ns_) return;
    next_mail_ns_ = now + ns(kFollowingLook);
    for (const Letter& letter : mail_.receive(epoch_)) take(letter);
  }

  void take(const Letter& letter) {
    switch (letter.kind) {
      case LetterKind::record:
        return take_record(letter);
      case LetterKind::proposal:
        return propose(letter);
      case LetterKind::accepted:
        return accept(letter);
      case LetterKind::leave:
      case LetterKind::neutral:
        if (exit_ == nullptr) leave({}, false);
        return exit_->take(letter);
    }
  }

  Table wanted() const {
    const std::lock_guard lock(mutex_);
    return wanted_;
  }

  const AgreementContext context_;
  GraphPlans plans_;  ///< of use_graph()
  Negotiation negotiation_;
  Intake intake_;
  PlanMail mail_;

  // Of the progress thread.
  std::uint64_t epoch_ = 0;
  PlanMaker maker_;
  std::optional<Coming> recorded_;  ///< of a plan that rank 0 has proposed
  std::optional<Coming> given_;     ///< of a graph
  std::uint64_t proposals_ = 0;
  std::map<std::string, std::set<int>> accepted_;  ///< rank 0: ranks that have a plan, by barrier
  Table last_;
  std::unique_ptr<PlanRun> run_;
  TransferLine::Number first_ = 0;  ///< of the line, for issue 0 of run_
  std::unique_ptr<PlanExit> exit_;
  std::uint64_t moved_mark_ = 0;
  std::int64_t moved_ns_ = 0;
  std::int64_t next_mail_ns_ = 0;  ///< while a plan is followed
  std::chrono::nanoseconds patience_;

  // Between callers of use_graph() and the progress thread.
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  Table wanted_;              ///< null once it is followed
  std::uint64_t graphs_ = 0;  ///< that were wanted
  bool stays_ = false;        ///< the plan is not left by this rank's own will
  bool leaving_ = false;
  std::optional<Error> failure_;
  std::string explanation_ = "no plan yet: ranks negotiate the first step";
};

}  // namespace

// Negotiating.

// Following.

// Leaving.

// Graphs.

std::unique_ptr<Agreement> agree_by_plans(const AgreementContext& context) {
  return std::make_unique<Topo>(context);
}

}  // namespace forebay
