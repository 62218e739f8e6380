#include "sync/buffered_line.hpp"

#include <algorithm>
#include <tuple>
#include <utility>

#include "comm/progress_thread.hpp"
#include "core/clock.hpp"
#include "core/combine.hpp"
#include "core/copy_values.hpp"
#include "sync/accelerator.hpp"

namespace forebay {
namespace {

/// Between two looks at what is not a sum.
constexpr std::chrono::microseconds kRestOfOthers{50};

/// Pieces end between two elements.
constexpr std::uint64_t kLargestElement = 8;

// What of a transfer lies where in a buffer, and how it gets there and back.
//
//   tensors   | conv1 | conv2        | fc        |
//   transfer  [ ..................................... )
//   buffer              [ first ........ )               a piece, when the transfer is longer
//
// Parts of a transfer without a request go in as neutral elements, and nowhere else.

/// Calls `visit` for each part of which [first, first + bytes) of the transfer has a share, with
/// the share's place in the part, its place after `first`, and its length.
template <typename Visit>
void for_each_share(const Transfer& transfer, std::uint64_t first, std::uint64_t bytes,
                    Visit visit) {
  std::uint64_t begin = 0;
  for (const auto& part : transfer.parts) {
    const std::uint64_t end = begin + part.elements * size_of(transfer.type);
    const std::uint64_t from = std::max(begin, first);
    const std::uint64_t to = std::min(end, first + bytes);
    if (from < to) visit(part, from - begin, from - first, to - from);
    begin = end;
  }
}

/// As for_each_share(), with the requests on the device only.
template <typename Visit>
void for_each_device_share(const Transfer& transfer, std::uint64_t first, std::uint64_t bytes,
                           Visit visit) {
  for_each_share(transfer, first, bytes,
                 [&](const TransferPart& part, auto in_part, auto after_first, auto length) {
                   if (part.request == nullptr || !part.request->on_device()) return;
                   visit(*part.request, in_part, after_first, length);
                 });
}

/// Of all parts; of one block of an allgather.
std::uint64_t bytes_of(const Transfer& transfer) {
  if (transfer.operation == SyncOperation::barrier) return 0;
  if (transfer.operation == SyncOperation::allgather) {
    const auto rows = transfer.rows.empty() ? 0 : std::ranges::max(transfer.rows);
    return rows * transfer.bytes_of_row;
  }
  std::uint64_t elements = 0;
  for (const auto& part : transfer.parts) elements += part.elements;
  return elements * size_of(transfer.type);
}

/// The bytes from `first` on of what is summed or broadcast, as many as there is `room`. Tensors on
/// a device are given to `sum`, which may be null where there are none.
void copy_in(const Transfer& transfer, std::uint64_t first, std::span<std::byte> room,
             Summation* sum) {
  for_each_share(transfer, first, room.size(),
                 [&](const TransferPart& part, auto from, auto to, auto bytes) {
                   const auto there = room.subspan(to, bytes);
                   if (part.request == nullptr) {
                     fill_neutral(transfer.type, combination_of(transfer.reduction), there);
                     return;
                   }
                   const auto numbers = part.request->in.subspan(from, bytes);
                   if (part.request->on_device()) {
                     sum->put(to, numbers, *part.request->ready);
                   } else {
                     copy_values(numbers, there);
                   }
                 });
}

/// This rank's block of an allgather.
void copy_block_in(const Transfer& transfer, std::uint64_t first, std::span<std::byte> room) {
  const auto& request = transfer.parts.front().request;
  if (request == nullptr || request->in.size() <= first) return;
  const auto bytes = std::min<std::uint64_t>(request->in.size() - first, room.size());
  copy_values(request->in.subspan(first, bytes), room);
}

/// `numbers` of the transfer from `first` on, to the tensors on the host; what lies on the device
/// stays. Divided by `divisor`, where it is not 1.
void copy_out(const Transfer& transfer, std::uint64_t first, std::span<const std::byte> numbers,
              std::uint64_t divisor) {
  for_each_share(transfer, first, numbers.size(),
                 [&](const TransferPart& part, auto to, auto from, auto bytes) {
                   if (part.request == nullptr || part.request->on_device()) return;
                   const auto out = part.request->out.subspan(to, bytes);
                   copy_values(numbers.subspan(from, bytes), out);
                   if (divisor != 1) divide(transfer.type, out, divisor);
                 });
}

/// Blocks of all ranks, `bytes` of each rank's rows from `first` on, into the handle.
void spread_blocks(const Transfer& transfer, std::uint64_t first, std::uint64_t bytes,
                   std::span<const std::byte> blocks) {
  const auto& request = transfer.parts.front().request;
  if (request == nullptr) return;
  auto& state = *request->state;
  if (first == 0) {
    state.gathered_rows = 0;
    for (const auto rows : transfer.rows) state.gathered_rows += rows;
    state.gathered.resize(state.gathered_rows * transfer.bytes_of_row);
  }
  std::uint64_t begin = 0;
  for (std::size_t rank = 0; rank < transfer.rows.size(); ++rank) {
    const std::uint64_t length = transfer.rows[rank] * transfer.bytes_of_row;
    if (length > first) {
      const auto count = std::min(length - first, bytes);
      copy_values(blocks.subspan(rank * bytes, count),
                  std::span(state.gathered).subspan(begin + first, count));
    }
    begin += length;
  }
}

}  // namespace

BufferedLine::BufferedLine(Communicator& comm, const SummationOptions& sums, Trace* trace,
                           SyncStatistics& statistics)
    : summations_(comm, sums),
      statistics_(statistics),
      timeline_(trace),
      rank_(comm.rank()),
      ranks_(comm.size()) {
  for (std::size_t i = 0; i < summations_.lanes(); ++i) {
    auto& lane = lanes_.emplace_back();
    lane.sum = &summations_.lane(i);
    lane.collectives = comm.nonblocking();
    lane.memory = std::make_shared<std::vector<std::byte>>();
  }
}

TransferLine::Number BufferedLine::start(Transfer transfer) {
  auto& moving = moving_.emplace_back(Moving{.transfer = std::move(transfer)});
  moving.bytes = bytes_of(moving.transfer);
  return first_ + moving_.size() - 1;
}

std::chrono::microseconds BufferedLine::step() {
  const std::int64_t look_ns = now_ns();
  bool moved = false;
  rest_ = ProgressThread::kAnyRest;
  move_lanes();
  // What ends makes room for what begins.
  while (finish_piece() || start_piece()) moved = true;
  hand_out_complete();
  if (moved) {
    pace_.begin();
    return std::chrono::microseconds::zero();
  }
  const bool waits_for_lane = cutting_ != first_ + moving_.size() && !lane_of(next_piece_).busy;
  return waits_for_lane ? std::min(rest_, pace_.rest_after(look_ns)) : rest_;
}

void BufferedLine::move_lanes() {
  for (auto piece = done_pieces_; piece < next_piece_; ++piece) {
    Lane& lane = lane_of(piece);
    if (lane.done) continue;
    if (lane.sums) {
      const auto rest = lane.sum->step();
      lane.done = !rest;
      if (rest) rest_ = std::min(rest_, *rest);
    } else {
      lane.done = lane.operation == nullptr || lane.operation->done();
      if (!lane.done) rest_ = std::min(rest_, kRestOfOthers);
    }
  }
}

std::uint64_t BufferedLine::longest_piece(const Transfer& transfer) const {
  const std::uint64_t largest = summations_.largest() / kLargestElement * kLargestElement;
  if (transfer.operation != SyncOperation::allgather) return largest;
  return std::max<std::uint64_t>(largest / static_cast<std::uint64_t>(ranks_), 1);
}

BufferedLine::Piece BufferedLine::cut() {
  Moving& moving = at(cutting_);
  Piece piece{.transfer = cutting_, .first = moving.started};
  piece.bytes = std::min(moving.bytes - moving.started, longest_piece(moving.transfer));
  moving.started += piece.bytes;
  piece.last = moving.started == moving.bytes;
  if (piece.last) ++cutting_;
  return piece;
}

bool BufferedLine::start_piece() {
  if (cutting_ == first_ + moving_.size()) return false;
  Lane& lane = lane_of(next_piece_);
  if (lane.busy || !lane.sum->free()) return false;
  lane.piece = cut();
  lane.busy = true;
  ++next_piece_;
  begin(lane, at(lane.piece.transfer));
  return true;
}

void BufferedLine::begin(Lane& lane, Moving& moving) {
  const auto& [transfer, piece] = std::tie(moving.transfer, lane.piece);
  if (piece.first == 0) moving.times.copy_in_ns = now_ns();
  lane.done = lane.taking = false;
  lane.sums = transfer.operation == SyncOperation::allreduce && piece.bytes > 0;
  {
    const Stopwatch watch(statistics_.copy_seconds);
    copy_piece_in(room_of(lane, moving), moving, lane);
  }
  lane.begin_ns = now_ns();
  if (piece.first == 0) moving.times.transfer_ns = lane.begin_ns;
  start_operation(lane, transfer);
}

/// Where this rank's part of a piece goes.
std::span<std::byte> BufferedLine::room_of(Lane& lane, Moving& moving) {
  const auto& transfer = moving.transfer;
  const std::uint64_t bytes = lane.piece.bytes;
  if (lane.sums) {
    const auto room = lane.sum->begin(transfer.type, combination_of(transfer.reduction), bytes);
    moving.is_mean = transfer.reduction == Reduction::mean && lane.sum->make_mean();
    return room;
  }
  const bool gathers = transfer.operation == SyncOperation::allgather;
  const auto blocks = gathers ? static_cast<std::uint64_t>(ranks_) : 1;
  const auto block = gathers ? static_cast<std::uint64_t>(rank_) : 0;
  if (lane.memory->size() < blocks * bytes) lane.memory->resize(blocks * bytes);
  return std::span(*lane.memory).subspan(block * bytes, bytes);
}

void BufferedLine::start_operation(Lane& lane, const Transfer& transfer) {
  const std::uint64_t bytes = lane.piece.bytes;
  const auto memory = std::span(*lane.memory);
  statistics_.wire_bytes += lane.sums ? summations_.wire_bytes(transfer.type, bytes) : bytes;
  if (lane.sums) {
    lane.sum->start();
  } else if (transfer.operation == SyncOperation::barrier) {
    lane.operation = lane.collectives->barrier();
  } else if (bytes > 0 && transfer.operation == SyncOperation::broadcast) {
    lane.operation = lane.collectives->broadcast({lane.memory, memory.first(bytes)}, transfer.root);
  } else if (bytes > 0) {
    const auto ranks = static_cast<std::uint64_t>(ranks_);
    const auto rank = static_cast<std::uint64_t>(rank_);
    lane.operation =
        lane.collectives->all_gather({lane.memory, memory.subspan(rank * bytes, bytes)},
                                     {lane.memory, memory.first(ranks * bytes)});
  }
}

void BufferedLine::copy_piece_in(std::span<std::byte> room, const Moving& moving, Lane& lane) {
  const auto& transfer = moving.transfer;
  if (transfer.operation == SyncOperation::allgather) {
    copy_block_in(transfer, lane.piece.first, room);
  } else if (transfer.operation != SyncOperation::broadcast || transfer.root == rank_) {
    copy_in(transfer, lane.piece.first, room, lane.sum);
  }
}

bool BufferedLine::finish_piece() {
  if (done_pieces_ == next_piece_) return false;
  Lane& lane = lane_of(done_pieces_);
  if (!lane.done) return false;
  if (!std::exchange(lane.taking, true)) take_out(lane, at(lane.piece.transfer));
  if (lane.sums && !lane.sum->taken()) {
    rest_ = std::min(rest_, kRestOfOthers);
    return false;
  }
  if (lane.sums) lane.sum->release();
  lane.operation = nullptr;
  lane.busy = false;
  ++done_pieces_;
  if (lane.piece.last) ++complete_;
  return true;
}

void BufferedLine::take_out(Lane& lane, Moving& moving) {
  const std::int64_t now = now_ns();
  statistics_.transfer_seconds += static_cast<double>(now - lane.begin_ns) * 1e-9;
  if (lane.piece.last) moving.times.copy_out_ns = now;
  const Stopwatch watch(statistics_.copy_seconds);
  const auto memory = std::span(*lane.memory);
  if (moving.transfer.operation == SyncOperation::allgather) {
    spread_blocks(moving.transfer, lane.piece.first, lane.piece.bytes, memory);
  } else if (!lane.sums) {
    keep_or_copy_out(memory.first(lane.piece.bytes), moving, lane);
  } else {
    keep_or_copy_out(lane.sum->result(), moving, lane);
  }
}

/// What may still be asked for again, by release(), stays as the caller has given it.
void BufferedLine::keep_or_copy_out(std::span<const std::byte> sums, Moving& moving, Lane& lane) {
  const auto& [transfer, piece] = std::tie(moving.transfer, lane.piece);
  const std::size_t before = moving.kept.size();
  if (!holding_) {
    copy_out(transfer, piece.first, sums, divisor_of(moving));
  } else {
    if (moving.kept.empty()) moving.kept_from = piece.first;
    moving.kept.insert(moving.kept.end(), sums.begin(), sums.end());
  }
  const auto kept = std::span(moving.kept).subspan(before);
  for_each_device_share(
      transfer, piece.first, piece.bytes,
      [&](const Request& request, auto to, auto at, auto bytes) {
        lane.sum->take(at, holding_ ? kept.subspan(at, bytes) : request.out.subspan(to, bytes));
      });
}

void BufferedLine::copy_kept_out(Moving& moving) {
  const auto kept = std::exchange(moving.kept, {});
  copy_out(moving.transfer, moving.kept_from, kept, divisor_of(moving));
  for_each_device_share(moving.transfer, moving.kept_from, kept.size(),
                        [&](const Request& request, auto to, auto at, auto bytes) {
                          summations_.on_device()->copy_now(request.out.data() + to,
                                                            kept.data() + at, bytes);
                        });
}

std::uint64_t BufferedLine::divisor_of(const Moving& moving) const {
  const bool divides = moving.transfer.operation == SyncOperation::allreduce &&
                       moving.transfer.reduction == Reduction::mean && !moving.is_mean;
  return divides ? static_cast<std::uint64_t>(ranks_) : 1;
}

void BufferedLine::give_up() noexcept {
  for (Lane& lane : lanes_) lane.sum->give_up();
}

void BufferedLine::hand_out_complete() {
  while (!holding_ && first_ < complete_) {
    // Out of the line before callers know, who may look at what is still on its way.
    Moving moving = std::move(moving_.front());
    moving_.pop_front();
    ++first_;
    hand_out(moving);
  }
}

void BufferedLine::hand_out(Moving& moving) {
  ++statistics_.transfers;
  statistics_.largest_transfer = std::max(statistics_.largest_transfer, moving.bytes);
  moving.times.done_ns = now_ns();
  for (const auto& part : moving.transfer.parts) {
    if (part.request == nullptr) continue;
    ++statistics_.tensors;
    statistics_.bytes += part.request->in.size();
    if (timeline_.wanted()) {
      moving.times.submitted_ns = part.request->submitted_ns;
      timeline_.add(part.request->tensor.name, moving.times);
    }
    part.request->finish();
  }
}

std::vector<std::shared_ptr<Request>> BufferedLine::release(std::span<const Number> without) {
  holding_ = false;
  std::vector<std::shared_ptr<Request>> back;
  for (; first_ < complete_; ++first_) {
    Moving moving = std::move(moving_.front());
    moving_.pop_front();
    if (std::ranges::find(without, first_) != without.end()) {
      for (auto& part : moving.transfer.parts) {
        if (part.request != nullptr) back.push_back(std::move(part.request));
      }
      continue;
    }
    copy_kept_out(moving);
    hand_out(moving);
  }
  for (auto& moving : moving_) copy_kept_out(moving);
  return back;
}

}  // namespace forebay
