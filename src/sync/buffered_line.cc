#include "sync/buffered_line.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

#include "comm/progress_thread.hpp"
#include "core/clock.hpp"
#include "core/combine.hpp"

namespace forebay {
namespace {

/// Between two looks at a transfer: the first rest, and the longest.
constexpr std::chrono::microseconds kShortestRest{20};
constexpr std::chrono::microseconds kLongestRest{200};

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

BufferedLine::BufferedLine(Communicator& comm, const LineOptions& options,
                           SyncStatistics& statistics)
    : options_(options),
      statistics_(statistics),
      timeline_(options.trace),
      rank_(comm.rank()),
      ranks_(comm.size()) {
  options_.buffer_bytes =
      std::max<std::uint64_t>(options_.buffer_bytes / kLargestElement, 1) * kLargestElement;
  for (int i = 0; i < options.buffers; ++i) {
    auto& buffer = buffers_.emplace_back();
    buffer.collectives = comm.nonblocking();
    buffer.memory = std::make_shared<std::vector<std::byte>>();
  }
}

TransferLine::Number BufferedLine::start(Transfer transfer) {
  auto& moving = moving_.emplace_back(Moving{.transfer = std::move(transfer)});
  moving.bytes = bytes_of(moving.transfer);
  return first_ + moving_.size() - 1;
}

std::chrono::microseconds BufferedLine::step() {
  bool moved = false;
  // What ends makes room for what begins, and what begins may end at once.
  while (finish_piece() || start_piece()) moved = true;
  hand_out_complete();
  if (done_pieces_ == next_piece_) return ProgressThread::kAnyRest;
  rest_ = moved ? kShortestRest : std::min(rest_ + rest_ / 4, kLongestRest);
  return rest_;
}

std::uint64_t BufferedLine::longest_piece(const Transfer& transfer) const {
  if (transfer.operation != SyncOperation::allgather) return options_.buffer_bytes;
  return std::max<std::uint64_t>(options_.buffer_bytes / static_cast<std::uint64_t>(ranks_), 1);
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
  Buffer& buffer = buffers_[next_piece_ % buffers_.size()];
  if (buffer.busy || cutting_ == first_ + moving_.size()) return false;
  buffer.piece = cut();
  buffer.busy = true;
  ++next_piece_;
  begin(buffer, at(buffer.piece.transfer));
  return true;
}

std::span<std::byte> BufferedLine::room(Buffer& buffer, std::uint64_t bytes) const {
  if (buffer.memory->size() < bytes) buffer.memory->resize(bytes);
  return std::span(*buffer.memory).first(bytes);
}

void BufferedLine::begin(Buffer& buffer, Moving& moving) {
  const auto& [transfer, piece] = std::tie(moving.transfer, buffer.piece);
  if (piece.first == 0) moving.times.copy_in_ns = now_ns();
  const bool gathers = transfer.operation == SyncOperation::allgather;
  const auto all = room(buffer, gathers ? piece.bytes * ranks_ : piece.bytes);
  const auto mine = gathers ? all.subspan(piece.bytes * rank_, piece.bytes) : all;
  {
    const Stopwatch watch(statistics_.copy_seconds);
    copy_in(mine, moving, piece);
  }
  buffer.begin_ns = now_ns();
  if (piece.first == 0) moving.times.transfer_ns = buffer.begin_ns;
  statistics_.wire_bytes += piece.bytes;
  const SharedBytes memory{buffer.memory, all};
  if (transfer.operation == SyncOperation::barrier) {
    buffer.operation = buffer.collectives->barrier();
  } else if (piece.bytes == 0) {
    buffer.operation = nullptr;
  } else if (gathers) {
    buffer.operation = buffer.collectives->all_gather({buffer.memory, mine}, memory);
  } else if (transfer.operation == SyncOperation::broadcast) {
    buffer.operation = buffer.collectives->broadcast(memory, transfer.root);
  } else {
    buffer.operation =
        buffer.collectives->all_reduce(memory, transfer.type, combination_of(transfer.reduction));
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
  Buffer& buffer = buffers_[done_pieces_ % buffers_.size()];
  if (buffer.operation != nullptr && !buffer.operation->done()) return false;
  const std::int64_t now = now_ns();
  statistics_.transfer_seconds += static_cast<double>(now - buffer.begin_ns) * 1e-9;
  buffer.operation = nullptr;
  Moving& moving = at(buffer.piece.transfer);
  if (buffer.piece.last) moving.times.copy_out_ns = now;
  {
    const Stopwatch watch(statistics_.copy_seconds);
    take_out(buffer, moving);
  }
  buffer.busy = false;
  ++done_pieces_;
  if (buffer.piece.last) ++complete_;
  return true;
}

void BufferedLine::take_out(Buffer& buffer, Moving& moving) {
  const auto& [transfer, piece] = std::tie(moving.transfer, buffer.piece);
  const auto memory = std::span(*buffer.memory);
  if (transfer.operation == SyncOperation::allgather) {
    spread(memory, moving, piece);
    return;
  }
  const auto sums = memory.first(piece.bytes);
  if (transfer.reduction == Reduction::mean && transfer.operation == SyncOperation::allreduce) {
    divide(transfer.type, sums, static_cast<std::uint64_t>(ranks_));
  }
  keep_or_write_out(sums, moving, piece);
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
  for_each_share(moving.transfer, piece.first, piece.bytes,
                 [&](const TransferPart& part, auto to, auto from, auto bytes) {
                   if (part.request == nullptr) return;
                   copy(part.request->out.subspan(to, bytes), sums.subspan(from, bytes));
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
