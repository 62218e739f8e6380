// Transfers through buffers of a fixed size that are used again and again.
//
//   transfers   |  A: conv1 conv2 fc  |  B: 3 buffers long        |  C: barrier |
//   pieces      |          0          |    1    |    2    |   3   |      4      |
//   lanes                first          second     first    second     first
//
// Piece n goes through lane n mod the number of lanes, so that ranks move through each lane in the
// same order whatever is ready when. Pieces start and end in their order.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "comm/nonblocking.hpp"
#include "comm/waiting.hpp"
#include "forebay/communicator.hpp"
#include "forebay/trace.hpp"
#include "sync/request.hpp"
#include "sync/summation.hpp"

namespace forebay {

// What happened to each tensor when, as a track of its own in the timeline (forebay/trace.hpp).
//
//   conv1   |-- waiting --|-- copy in --|------ transfer ------|-- copy out --|

/// Steady clock, nanoseconds.
struct TensorTimes {
  std::int64_t submitted_ns = 0;
  std::int64_t copy_in_ns = 0;
  std::int64_t transfer_ns = 0;
  std::int64_t copy_out_ns = 0;
  std::int64_t done_ns = 0;
};

/// Of one thread. Does nothing without a trace, which outlives it.
class TensorTimeline {
 public:
  explicit TensorTimeline(Trace* trace) : trace_(trace) {}

  bool wanted() const { return trace_ != nullptr; }

  void add(const std::string& name, const TensorTimes& times) {
    if (trace_ == nullptr) return;
    const auto [found, is_new] = tracks_.try_emplace(name, 0);
    if (is_new) found->second = trace_->add_track(name);
    const int track = found->second;
    trace_->add_span_to(track, "waiting", times.submitted_ns, times.copy_in_ns);
    trace_->add_span_to(track, "copy in", times.copy_in_ns, times.transfer_ns);
    trace_->add_span_to(track, "transfer", times.transfer_ns, times.copy_out_ns);
    trace_->add_span_to(track, "copy out", times.copy_out_ns, times.done_ns);
  }

 private:
  Trace* trace_;
  std::unordered_map<std::string, int> tracks_;
};

class BufferedLine final : public TransferLine {
 public:
  /// Collective. A piece is at most `sums.largest` bytes long, and `sums.lanes` of them are on
  /// their way at the same time.
  BufferedLine(Communicator& comm, const SummationOptions& sums, Trace* trace,
               SyncStatistics& statistics);

  /// One half sentence: how numbers are summed, and why.
  std::string explain() const { return summations_.explain(); }

  /// The device on which sums are made, and whose memory tensors may have; null: the host.
  Accelerator* on_device() const { return summations_.on_device(); }
  /// After a failure: when it returns, no more memory of requests is touched.
  void give_up() noexcept;

  Number start(Transfer transfer) override;
  std::chrono::microseconds step() override;
  bool idle() const override { return moving_.empty() || moving_.size() == complete_ - first_; }
  Number complete() const override { return complete_; }
  void hold() override { holding_ = true; }
  std::vector<std::shared_ptr<Request>> release(std::span<const Number> without) override;

 private:
  struct Moving {
    Transfer transfer = {};
    std::uint64_t bytes = 0;           ///< of all parts; of one block of an allgather
    std::uint64_t started = 0;         ///< bytes that have come into a buffer
    bool is_mean = false;              ///< sums come divided
    std::vector<std::byte> kept = {};  ///< what was complete while the line held
    std::uint64_t kept_from = 0;
    TensorTimes times = {};
  };
  struct Piece {
    Number transfer = 0;
    std::uint64_t first = 0;  ///< byte of the transfer
    std::uint64_t bytes = 0;
    bool last = false;
  };
  /// Sums have memory of their own; what is not a sum goes through this one's.
  struct Lane {
    Summation* sum = nullptr;
    std::unique_ptr<NonblockingCollectives> collectives;
    std::shared_ptr<std::vector<std::byte>> memory;
    NonblockingCollectives::Operation operation;
    Piece piece;
    bool busy = false;
    bool sums = false;
    bool done = false;
    bool taking = false;  ///< its result is on its way out
    std::int64_t begin_ns = 0;
  };

  Lane& lane_of(std::uint64_t piece) { return lanes_[piece % lanes_.size()]; }
  void move_lanes();
  bool finish_piece();
  bool start_piece();
  Piece cut();
  void begin(Lane& lane, Moving& moving);
  std::span<std::byte> room_of(Lane& lane, Moving& moving);
  void start_operation(Lane& lane, const Transfer& transfer);
  void copy_piece_in(std::span<std::byte> room, const Moving& moving, Lane& lane);
  void take_out(Lane& lane, Moving& moving);
  void keep_or_copy_out(std::span<const std::byte> sums, Moving& moving, Lane& lane);
  void copy_kept_out(Moving& moving);
  std::uint64_t divisor_of(const Moving& moving) const;
  void hand_out_complete();
  void hand_out(Moving& moving);
  Moving& at(Number number) { return moving_[number - first_]; }
  std::uint64_t longest_piece(const Transfer& transfer) const;

  Summations summations_;
  SyncStatistics& statistics_;
  TensorTimeline timeline_;
  int rank_;
  int ranks_;

  std::deque<Moving> moving_;  ///< oldest first
  Number first_ = 0;           ///< of moving_
  Number cutting_ = 0;         ///< the oldest that is not wholly in buffers
  Number complete_ = 0;
  bool holding_ = false;

  std::vector<Lane> lanes_;
  std::uint64_t next_piece_ = 0;
  std::uint64_t done_pieces_ = 0;
  Pace pace_;
  std::chrono::microseconds rest_{0};  ///< that lanes ask for
};

}  // namespace forebay
