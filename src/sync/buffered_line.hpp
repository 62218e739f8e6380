// Transfers through buffers of a fixed size that are used again and again.
//
//   transfers   |  A: conv1 conv2 fc  |  B: 3 buffers long        |  C: barrier |
//   pieces      |          0          |    1    |    2    |   3   |      4      |
//   buffers              first          second     first    second     first
//
// Piece n goes through buffer n mod the number of buffers, so that ranks move through each buffer
// in the same order whatever is ready when. Pieces start and end in their order.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <vector>

#include "comm/nonblocking.hpp"
#include "forebay/communicator.hpp"
#include "sync/tensor_timeline.hpp"
#include "sync/transfer_line.hpp"

namespace forebay {

struct LineOptions {
  std::uint64_t buffer_bytes = std::uint64_t{64} << 20;
  int buffers = 1;  ///< pieces on their way at the same time
  Trace* trace = nullptr;
};

class BufferedLine final : public TransferLine {
 public:
  /// Collective.
  BufferedLine(Communicator& comm, const LineOptions& options, SyncStatistics& statistics);

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
    bool cut = false;                  ///< all of it has
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
  struct Buffer {
    std::unique_ptr<NonblockingCollectives> collectives;
    std::shared_ptr<std::vector<std::byte>> memory;
    NonblockingCollectives::Operation operation;
    bool busy = false;
    Piece piece;
    std::int64_t begin_ns = 0;
  };

  bool finish_piece();
  bool start_piece();
  Piece cut();
  void begin(Buffer& buffer, Moving& moving);
  void copy_in(std::span<std::byte> room, const Moving& moving, const Piece& piece) const;
  void take_out(Buffer& buffer, Moving& moving);
  void keep_or_write_out(std::span<const std::byte> sums, Moving& moving, const Piece& piece);
  void write_out(std::span<const std::byte> sums, const Moving& moving, const Piece& piece) const;
  void spread(std::span<const std::byte> blocks, const Moving& moving, const Piece& piece) const;
  void hand_out_complete();
  void hand_out(Moving& moving);
  Moving& at(Number number) { return moving_[number - first_]; }
  std::uint64_t longest_piece(const Transfer& transfer) const;
  std::span<std::byte> room(Buffer& buffer, std::uint64_t bytes) const;

  LineOptions options_;
  SyncStatistics& statistics_;
  TensorTimeline timeline_;
  int rank_;
  int ranks_;

  std::deque<Moving> moving_;  ///< oldest first
  Number first_ = 0;           ///< of moving_
  Number cutting_ = 0;         ///< the oldest that is not wholly in buffers
  Number complete_ = 0;
  bool holding_ = false;

  std::vector<Buffer> buffers_;
  std::uint64_t next_piece_ = 0;
  std::uint64_t done_pieces_ = 0;
  std::chrono::microseconds rest_{0};
};

}  // namespace forebay
