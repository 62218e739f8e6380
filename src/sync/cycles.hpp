// The state machine behind negotiation.hpp.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "comm/nonblocking.hpp"
#include "sync/agreed_operation.hpp"
#include "sync/coordinator.hpp"
#include "sync/negotiation.hpp"
#include "sync/ready_bits.hpp"
#include "sync/request_queue.hpp"
#include "sync/response_cache.hpp"

namespace forebay {

/// Of the progress thread, but for `queue`.
class Negotiation::Cycles {
 public:
  Cycles(const AgreementContext& context, CycleKind kind);

  Rest step();
  bool closed() const { return closed_; }
  bool resting() const { return phase_ == Phase::rest; }
  std::vector<std::shared_ptr<Request>> take_back();
  std::vector<std::string> take_without();
  std::string explain() const;

  RequestQueue queue;

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

}  // namespace forebay
