#include "sync/buffered_line.hpp"

#include <algorithm>
#include <cstring>
#include <tuple>
#include <utility>

#include "comm/progress_thread.hpp"
#include "core/clock.hpp"
#include "core/combine.hpp"

namespace forebay {
namespace {

/// Between two looks at what is not a sum.
constexpr std::chrono::microseconds kRestOfOthers{50};

/// Pieces end between two elements.
constexpr std::uint64_t kLargestElement = 8;

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

/// Calls `visit` for each part of which [first, first + bytes) of the whole has a share, with the
/// share's place in the part, its place after `first`, and its length.
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

void copy(std::span<std::byte> to, std::span<const std::byte> from) {
  if (!from.empty()) std::memcpy(to.data(), from.data(), from.size());
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
  lane.done = false;
  lane.sums = transfer.operation == SyncOperation::allreduce && piece.bytes > 0;
  {
    const Stopwatch watch(statistics_.copy_seconds);
    copy_in(room_of(lane, transfer), moving, piece);
  }
  lane.begin_ns = now_ns();
  if (piece.first == 0) moving.times.transfer_ns = lane.begin_ns;
  start_operation(lane, transfer);
}

/// Where this rank's part of a piece goes.
std::span<std::byte> BufferedLine::room_of(Lane& lane, const Transfer& transfer) {
  const std::uint64_t bytes = lane.piece.bytes;
  if (lane.sums) return lane.sum->begin(transfer.type, combination_of(transfer.reduction), bytes);
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

void BufferedLine::copy_in(std::span<std::byte> room, const Moving& moving,
                           const Piece& piece) const {
  const auto& transfer = moving.transfer;
  if (transfer.operation == SyncOperation::allgather) {
    const auto& request = transfer.parts.front().request;
    if (request == nullptr || request->in.size() <= piece.first) return;
    const auto bytes = std::min<std::uint64_t>(request->in.size() - piece.first, piece.bytes);
    copy(room, request->in.subspan(piece.first, bytes));
    return;
  }
  if (transfer.operation == SyncOperation::broadcast && transfer.root != rank_) return;
  for_each_share(transfer, piece.first, piece.bytes,
                 [&](const TransferPart& part, auto from, auto to, auto bytes) {
                   const auto there = room.subspan(to, bytes);
                   if (part.request != nullptr) {
                     copy(there, part.request->in.subspan(from, bytes));
                   } else {
                     fill_neutral(transfer.type, combination_of(transfer.reduction), there);
                   }
                 });
}

bool BufferedLine::finish_piece() {
  if (done_pieces_ == next_piece_) return false;
  Lane& lane = lane_of(done_pieces_);
  if (!lane.done) return false;
  const std::int64_t now = now_ns();
  statistics_.transfer_seconds += static_cast<double>(now - lane.begin_ns) * 1e-9;
  Moving& moving = at(lane.piece.transfer);
  if (lane.piece.last) moving.times.copy_out_ns = now;
  {
    const Stopwatch watch(statistics_.copy_seconds);
    take_out(lane, moving);
  }
  if (lane.sums) lane.sum->release();
  lane.operation = nullptr;
  lane.busy = false;
  ++done_pieces_;
  if (lane.piece.last) ++complete_;
  return true;
}

void BufferedLine::take_out(Lane& lane, Moving& moving) {
  const auto memory = std::span(*lane.memory);
  if (moving.transfer.operation == SyncOperation::allgather) {
    spread(memory, moving, lane.piece);
  } else {
    keep_or_write_out(lane.sums ? lane.sum->result() : memory.first(lane.piece.bytes), moving,
                      lane.piece);
  }
}

/// What may still be asked for again, by release(), stays as the caller has given it.
void BufferedLine::keep_or_write_out(std::span<const std::byte> sums, Moving& moving,
                                     const Piece& piece) {
  if (!holding_) {
    write_out(sums, moving, piece);
    return;
  }
  if (moving.kept.empty()) moving.kept_from = piece.first;
  moving.kept.insert(moving.kept.end(), sums.begin(), sums.end());
}

void BufferedLine::write_out(std::span<const std::byte> sums, const Moving& moving,
                             const Piece& piece) const {
  const auto& transfer = moving.transfer;
  const bool divides =
      transfer.operation == SyncOperation::allreduce && transfer.reduction == Reduction::mean;
  for_each_share(transfer, piece.first, piece.bytes,
                 [&](const TransferPart& part, auto to, auto from, auto bytes) {
                   if (part.request == nullptr) return;
                   const auto out = part.request->out.subspan(to, bytes);
                   copy(out, sums.subspan(from, bytes));
                   if (divides) divide(transfer.type, out, static_cast<std::uint64_t>(ranks_));
                 });
}

/// Blocks of all ranks, each with a piece of its rank's rows.
void BufferedLine::spread(std::span<const std::byte> blocks, const Moving& moving,
                          const Piece& piece) const {
  const auto& transfer = moving.transfer;
  const auto& request = transfer.parts.front().request;
  if (request == nullptr) return;
  auto& state = *request->state;
  if (piece.first == 0) {
    state.gathered_rows = 0;
    for (const auto rows : transfer.rows) state.gathered_rows += rows;
    state.gathered.resize(state.gathered_rows * transfer.bytes_of_row);
  }
  std::uint64_t begin = 0;
  for (std::size_t rank = 0; rank < transfer.rows.size(); ++rank) {
    const std::uint64_t length = transfer.rows[rank] * transfer.bytes_of_row;
    if (length > piece.first) {
      const auto bytes = std::min(length - piece.first, piece.bytes);
      copy(std::span(state.gathered).subspan(begin + piece.first, bytes),
           blocks.subspan(rank * piece.bytes, bytes));
    }
    begin += length;
  }
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
    part.request->state->finish();
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
    write_out(moving.kept, moving, {.first = moving.kept_from, .bytes = moving.kept.size()});
    hand_out(moving);
  }
  for (auto& moving : moving_) {
    const auto kept = std::exchange(moving.kept, {});
    write_out(kept, moving, {.first = moving.kept_from, .bytes = kept.size()});
  }
  return back;
}

}  // namespace forebay
