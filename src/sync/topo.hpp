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
#pragma once

#include <condition_variable>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>

#include "forebay/sync_agreement.hpp"
#include "sync/intake.hpp"
#include "sync/negotiation.hpp"
#include "sync/plan_mail.hpp"
#include "sync/plan_maker.hpp"
#include "sync/plan_run.hpp"

namespace forebay {

class Topo final : public Agreement {
 public:
  /// Collective.
  explicit Topo(const AgreementContext& context);

  bool submit(std::shared_ptr<Request> request) override;
  bool end_step() override;
  /// Nothing may be on its way on this rank.
  void use_graph(const Graph& graph, std::span<const std::string> fetches) override;
  Rest step() override;
  bool closed() const override { return negotiation_.closed(); }
  void fail(const Error& error) override;
  std::string explain() const override;

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
  Rest negotiate();
  void take_record(const Letter& letter);
  void propose(const Letter& letter);
  void take_graph();
  void enter_barrier(std::optional<Coming>& coming);
  void accept(const Letter& letter);
  bool begin_agreed(std::optional<Coming>& coming);
  void go_on_after_join();
  void begin(Table table, const std::set<std::string>& left_out, std::uint64_t epochs);
  void tell_of(const Table& table);

  // Following.
  Rest follow();
  bool change_graph();
  void look_for_changes();
  bool nothing_moves();
  void leave(const std::string& reason, bool is_fallback);

  // Leaving.
  Rest leave_on();

  void read_mail();
  void take(const Letter& letter);
  Table wanted() const;

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

}  // namespace forebay
