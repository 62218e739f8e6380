// What of a transfer lies where in a buffer, and how it gets there and back.
//
//   tensors   | conv1 | conv2        | fc        |
//   transfer  [ ..................................... )
//   buffer              [ first ........ )               a piece, when the transfer is longer
//
// Local functions; parts of a transfer without a request go in as neutral elements, and nowhere
// else.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>

#include "sync/request.hpp"
#include "sync/summation.hpp"

namespace forebay {

/// Of all parts; of one block of an allgather.
std::uint64_t bytes_of(const Transfer& transfer);

/// The bytes from `first` on of what is summed or broadcast, as many as there is `room`. Tensors on
/// a device are given to `sum`, which may be null where there are none.
void copy_in(const Transfer& transfer, std::uint64_t first, std::span<std::byte> room,
             Summation* sum);
/// This rank's block of an allgather.
void copy_block_in(const Transfer& transfer, std::uint64_t first, std::span<std::byte> room);

/// `numbers` of the transfer from `first` on, to the tensors on the host; what lies on the device
/// stays. Divided by `divisor`, where it is not 1.
void copy_out(const Transfer& transfer, std::uint64_t first, std::span<const std::byte> numbers,
              std::uint64_t divisor);
/// Blocks of all ranks, `bytes` of each rank's rows from `first` on, into the handle.
void spread_blocks(const Transfer& transfer, std::uint64_t first, std::uint64_t bytes,
                   std::span<const std::byte> blocks);

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

}  // namespace forebay
