#include "sync/transfer_copies.hpp"

#include <cstring>

#include "core/combine.hpp"

namespace forebay {
namespace {

void copy(std::span<std::byte> to, std::span<const std::byte> from) {
  if (!from.empty()) std::memcpy(to.data(), from.data(), from.size());
}

}  // namespace

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
                     copy(there, numbers);
                   }
                 });
}

void copy_block_in(const Transfer& transfer, std::uint64_t first, std::span<std::byte> room) {
  const auto& request = transfer.parts.front().request;
  if (request == nullptr || request->in.size() <= first) return;
  const auto bytes = std::min<std::uint64_t>(request->in.size() - first, room.size());
  copy(room, request->in.subspan(first, bytes));
}

void copy_out(const Transfer& transfer, std::uint64_t first, std::span<const std::byte> numbers,
              std::uint64_t divisor) {
  for_each_share(transfer, first, numbers.size(),
                 [&](const TransferPart& part, auto to, auto from, auto bytes) {
                   if (part.request == nullptr || part.request->on_device()) return;
                   const auto out = part.request->out.subspan(to, bytes);
                   copy(out, numbers.subspan(from, bytes));
                   if (divisor != 1) divide(transfer.type, out, divisor);
                 });
}

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
      copy(std::span(state.gathered).subspan(begin + first, count),
           blocks.subspan(rank * bytes, count));
    }
    begin += length;
  }
}

}  // namespace forebay
