#include "sync/topo.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "comm/messages.hpp"
#include "core/clock.hpp"
#include "core/log.hpp"

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

}  // namespace

Topo::Topo(const AgreementContext& context)
    : context_(context),
      plans_(*context.comm, context.options.fusion_bytes),
      negotiation_(context),
      intake_(negotiation_),
      mail_(*context.comm, context.statistics),
      maker_(context.comm->size(), context.options.fusion_bytes),
      patience_(std::min(context.options.plan_patience, context.options.stall_warning)) {}

bool Topo::submit(std::shared_ptr<Request> request) { return intake_.submit(std::move(request)); }

bool Topo::end_step() { return intake_.end_step(); }

Agreement::Rest Topo::step() {
  intake_.reclaim();
  read_mail();
  if (exit_ != nullptr) return leave_on();
  return run_ != nullptr ? follow() : negotiate();
}

void Topo::read_mail() {
  const std::int64_t now = now_ns();
  if (run_ != nullptr && exit_ == nullptr && now < next_mail_ns_) return;
  next_mail_ns_ = now + ns(kFollowingLook);
  for (const Letter& letter : mail_.receive(epoch_)) take(letter);
}

void Topo::take(const Letter& letter) {
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

void Topo::fail(const Error& error) {
  negotiation_.fail(error);
  const std::lock_guard lock(mutex_);
  failure_ = error;
  changed_.notify_all();
}

std::string Topo::explain() const {
  const std::lock_guard lock(mutex_);
  return explanation_;
}

// Negotiating.

Agreement::Rest Topo::negotiate() {
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

void Topo::take_record(const Letter& letter) {
  const auto proposal = maker_.take(letter.from, decode_record(letter.content), last_.get());
  if (!proposal || recorded_ || wanted() != nullptr) return;
  mail_.send_all(LetterKind::proposal, epoch_, encode(*proposal));
}

void Topo::propose(const Letter& letter) {
  PlanProposal proposal = decode_proposal(letter.content);
  // A plan that is used again keeps its table.
  const bool known = last_ != nullptr && last_->plan().digest == proposal.plan.digest;
  recorded_.emplace();
  recorded_->table = known ? last_ : std::make_shared<const PlanTable>(std::move(proposal.plan));
  recorded_->start = std::move(proposal.start);
  recorded_->barrier = fmt::format("{} {}.{}", kPlanPrefix, epoch_, proposals_++);
  enter_barrier(recorded_);
}

void Topo::take_graph() {
  const Table table = wanted();
  if (table == nullptr || given_) return;
  given_.emplace();
  given_->table = table;
  given_->barrier = fmt::format("{} of graph {}", kPlanPrefix, graphs_);
  enter_barrier(given_);
}

/// Rank 0 comes last: when the barrier is done, no rank can be without the plan, not even one that
/// has joined and is not waited for in negotiations.
void Topo::enter_barrier(std::optional<Coming>& coming) {
  if (!coming || coming->state != nullptr) return;
  if (mail_.rank() != 0) {
    MessageWriter writer;
    writer.text(coming->barrier);
    mail_.send(0, LetterKind::accepted, epoch_, writer.bytes());
  } else if (accepted_[coming->barrier].size() + 1 < static_cast<std::size_t>(mail_.ranks())) {
    return;
  }
  coming->state = std::make_shared<SyncHandle::State>();
  negotiation_.submit(std::make_shared<Request>(Request{.operation = SyncOperation::barrier,
                                                        .tensor = {.name = coming->barrier},
                                                        .state = coming->state,
                                                        .submitted_ns = now_ns()}));
}

void Topo::accept(const Letter& letter) {
  const std::string barrier = MessageReader(letter.content).text();
  accepted_[barrier].insert(letter.from);
  if (recorded_ && recorded_->barrier == barrier) enter_barrier(recorded_);
  if (given_ && given_->barrier == barrier) enter_barrier(given_);
}

bool Topo::begin_agreed(std::optional<Coming>& coming) {
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
void Topo::go_on_after_join() {
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

void Topo::begin(Table table, const std::set<std::string>& left_out, std::uint64_t epochs) {
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

void Topo::tell_of(const Table& table) {
  const std::lock_guard lock(mutex_);
  explanation_ =
      fmt::format("{} tensors in {} transfers, {}", table->tensors(), table->plan().buffers.size(),
                  wanted_ == table ? "as the graph asks for" : "as a step has shown");
}

// Following.

Agreement::Rest Topo::follow() {
  if (change_graph()) return Rest::zero();
  while (run_->ready()) {
    auto transfer = run_->issue();
    if (!transfer) break;
    first_ = context_.line.start(std::move(*transfer)) - (run_->issued() - 1);
  }
  look_for_changes();
  if (exit_ != nullptr) return Rest::zero();
  const auto look = std::chrono::duration_cast<Rest>(nanoseconds((now_ns() - moved_ns_) / 8));
  return std::clamp<Rest>(look, kShortestLook, kLongestLook);
}

/// Nothing is on its way on any rank, and all have issued the same.
bool Topo::change_graph() {
  const Table table = wanted();
  if (table == nullptr) return false;
  intake_.follow(table, {});
  begin(table, {}, 2);
  return true;
}

void Topo::look_for_changes() {
  if (intake_.has_strays()) {
    bool only_ends = false;
    const std::string stray = intake_.describe_strays(only_ends);
    leave(fmt::format("'{}' is not part of it", printable_key(stray)), !only_ends);
  } else if (intake_.steps_ended() > run_->rounds()) {
    leave(fmt::format("a step has ended without '{}'", printable_key(run_->missing())), true);
  } else if (nothing_moves()) {
    leave(fmt::format("'{}' does not come", printable_key(run_->missing())), true);
    patience_ = std::min<nanoseconds>(2 * patience_, context_.options.stall_warning);
  }
}

/// Either tensors wait here for others that do not come, or other ranks do not issue what this one
/// has: the negotiation finds out who misses what.
bool Topo::nothing_moves() {
  const std::int64_t now = now_ns();
  const TransferLine& line = context_.line;
  const std::uint64_t mark = intake_.submitted() + run_->issued() + line.complete();
  if (mark != std::exchange(moved_mark_, mark)) moved_ns_ = now;
  const SyncOptions& options = context_.options;
  nanoseconds limit = patience_;
  if (!line.idle()) {
    limit = options.stall_warning;
    if (options.stall_limit.count() > 0) limit = std::min<nanoseconds>(limit, options.stall_limit);
  } else if (intake_.slots()->filled() == 0) {
    return false;
  }
  return now - moved_ns_ > ns(limit);
}

void Topo::leave(const std::string& reason, bool is_fallback) {
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

Agreement::Rest Topo::leave_on() {
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

// Graphs.

Topo::Table Topo::wanted() const {
  const std::lock_guard lock(mutex_);
  return wanted_;
}

void Topo::use_graph(const Graph& graph, std::span<const std::string> fetches) {
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

}  // namespace forebay
