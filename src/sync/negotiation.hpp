// The baseline: ranks compare, cycle by cycle, what is ready (paper 002, 6.2.2), and two ways to do
// so at less cost (6.3.1, 6.3.2).
//
//   rest -> compare -> [invalidate] -> [ask -> answer] -> move -> [pace] -> rest
//
//   compare      one bitwise allreduce: known tensors that are ready, and what else is to be done
//   invalidate   known tensors that somebody wants to be something else, or waits too long for,
//                are known no longer
//   ask, answer  ranks tell rank 0 what they newly have; it answers what all of them do now
//   move         transfers, one after the other
//   pace         gs: ranks agree on the shortest of their rests
//
// A cycle lasts `options.cycle` at least: the rest is what remains of it. While a rank waits for
// the others it does not rest at all, as in a blocking MPI_Allreduce; with nbcs it rests for a
// fifth of a millisecond between two looks.
//
// A rank that has joined says that it is ready for everything, and adds neutral elements.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "comm/nonblocking.hpp"
#include "core/non_copyable.hpp"
#include "forebay/sync_agreement.hpp"
#include "sync/coordinator.hpp"
#include "sync/request.hpp"
#include "sync/response_cache.hpp"

namespace forebay {

// Requests on their way from any thread to the progress thread: nobody ever waits.
//
//   push: head -> new -> older -> oldest       one exchange of the head
//   take: the whole chain at once, turned round

/// push() from any thread, take() from one.
class RequestQueue : private NonCopyable {
 public:
  ~RequestQueue() { take(); }

  void push(std::shared_ptr<Request> request) {
    auto* link = new Link{std::move(request), head_.load(std::memory_order_relaxed)};
    while (!head_.compare_exchange_weak(link->older, link, std::memory_order_release,
                                        std::memory_order_relaxed)) {
    }
  }

  bool empty() const { return head_.load(std::memory_order_acquire) == nullptr; }

  /// All that were pushed so far, oldest first.
  std::vector<std::shared_ptr<Request>> take() {
    std::vector<std::shared_ptr<Request>> taken;
    for (Link* link = head_.exchange(nullptr, std::memory_order_acquire); link != nullptr;) {
      const std::unique_ptr<Link> owner(link);
      taken.push_back(std::move(link->request));
      link = link->older;
    }
    std::reverse(taken.begin(), taken.end());
    return taken;
  }

 private:
  struct Link {
    std::shared_ptr<Request> request;
    Link* older;
  };

  std::atomic<Link*> head_ = nullptr;
};

enum class CycleKind : std::uint8_t { plain, gs, nbcs };

class Negotiation final : public Agreement {
 public:
  /// Collective.
  explicit Negotiation(const AgreementContext& context, CycleKind kind = CycleKind::plain);

  /// A request waits for the next cycle, so nobody has to be woken for it.
  bool submit(std::shared_ptr<Request> request) override {
    queue_.push(std::move(request));
    return false;
  }
  Rest step() override;
  bool closed() const override { return closed_; }
  void fail(const Error& error) override;
  std::string explain() const override;

  /// Whether no cycle is on its way: step() never goes past the end of a cycle, at which all
  /// ranks have completed and handed out the same operations.
  bool between_cycles() const { return phase_ == Phase::rest; }
  /// Takes back all requests that are not done, also those that the coordinator knows of, and joins
  /// that not all ranks have asked for: they are to be submitted anew, here or elsewhere. Between
  /// cycles, on all ranks after the same cycle.
  std::vector<std::shared_ptr<Request>> take_back();
  /// Names of what others have done since the last call while this rank, which has joined, added
  /// neutral elements.
  std::vector<std::string> take_without();

 private:
  enum class Phase : std::uint8_t { rest, compare, invalidate, ask, answer, move, pace };
  /// A request that is not agreed on yet.
  struct Waiting {
    std::shared_ptr<Request> request;
    Signature signature;
    bool told = false;  ///< to the coordinator
    bool looked = false;
  };

  // Each does what its phase can do now; tells whether the phase is over.
  bool begin();
  bool compare();
  bool invalidate();
  bool ask();
  bool answer();
  bool move();
  bool pace();

  bool advance();
  void enter(Phase phase);
  Rest rest_of_phase(std::int64_t now_ns) const;
  void check_patience(std::int64_t now_ns) const;

  void take_requests();
  void look_up(Waiting& waiting, std::int64_t now_ns);
  bool waits_too_long(const Waiting& waiting, std::int64_t now_ns) const;
  void start_compare();
  void agree_on_known();
  std::vector<AskedOperation> new_operations(std::int64_t now_ns);
  void send(int to, std::span<const std::byte> message);
  void take_answer(std::vector<AgreedOperation> agreed);
  void fail_tensor(const AgreedOperation& agreed);
  void start_transfers();
  void look_for_stalls(std::int64_t now_ns);
  void end();
  void rest_for(std::int64_t rest_ns);
  void note_oversleep(std::int64_t now_ns);

  RequestQueue queue_;

  // Of the progress thread.
  const SyncOptions& options_;
  const CycleKind kind_;
  std::shared_ptr<Communicator> comm_;
  std::unique_ptr<NonblockingCollectives> collectives_;
  TransferLine& line_;
  SyncStatistics& statistics_;
  bool yields_;  ///< more ranks than cores: a rank that waits makes room

  Phase phase_ = Phase::rest;
  bool closed_ = false;
  NonblockingCollectives::Operation operation_;
  ResponseCache cache_;
  std::optional<Coordinator> coordinator_;  ///< rank 0
  bool told_of_eviction_ = false;

  std::unordered_map<std::string, Waiting> waiting_;
  std::shared_ptr<Request> join_;  ///< asked for; null: not
  bool join_told_ = false;
  std::shared_ptr<Request> close_;
  bool close_told_ = false;
  bool one_closes_ = false;           ///< some rank has, as of the last cycle
  std::vector<std::string> without_;  ///< done without a request of this rank

  // Of the cycle that is on its way.
  ReadyBits ready_;
  ReadyBits invalid_;
  bool all_close_ = false;
  bool all_joined_ = false;
  bool had_something_ = false;
  std::vector<AgreedOperation> agreed_;
  std::vector<std::optional<std::vector<AskedOperation>>> asked_;  ///< rank 0: by rank
  std::shared_ptr<std::int64_t> pace_ns_;

  std::uint64_t cycle_ = 0;
  std::int64_t cycle_begin_ns_ = 0;
  std::int64_t phase_begin_ns_ = 0;
  std::int64_t rest_end_ns_ = 0;
  std::int64_t next_stall_look_ns_ = 0;
};

/// Transfers in the order of a plan, and a negotiation where there is none: see topo.cc.
/// Collective.
std::unique_ptr<Agreement> agree_by_plans(const AgreementContext& context);

}  // namespace forebay
