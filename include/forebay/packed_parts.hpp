// Samples of several parts as one value: how a Loader delivers what is spread over several records
// ("image-000000001" and "label-000000001", or records of databases beside each other).
//
//   magic, 4 bytes | parts N, 4 bytes | length of each part, N times 8 bytes | parts
//
// Numbers have the byte order of this machine: a packed value lives in memory only. Each part
// begins at a multiple of 8 bytes from the start, and so do values. Which part is which, and what
// it is called, is the same for all samples of a data set: Loader::parts(), Samples::parts().
//
// Values of a batch that came decoded may instead tell where their parts are used in the page
// cache:
//
//   a secret of this process, 8 bytes | packed size, 8 bytes | address and length, N times 16 bytes
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace forebay {

/// What packing parts of these sizes takes.
std::uint64_t packed_parts_bytes(std::span<const std::span<const std::byte>> parts);

/// `to` has packed_parts_bytes(). Padding is filled with zeros.
void pack_parts(std::span<const std::span<const std::byte>> parts, std::span<std::byte> to);

/// What a value that tells where its parts are takes, and that value. `parts` outlive it.
std::uint64_t told_parts_bytes(std::size_t parts);
void tell_parts(std::span<const std::span<const std::byte>> parts, std::span<std::byte> to);
/// Size of `value` once it is packed, and that in `to`, which has it. Values of one part stay as
/// they are.
std::uint64_t packed_size(std::span<const std::byte> value);
void copy_packed(std::span<const std::byte> value, std::span<std::byte> to);

/// Brings the ends of `value`, or of the parts that it tells of, into the caches: they tell about
/// the rest, and where values lie apart none is there.
void fetch_ends(std::span<const std::byte> value) noexcept;

/// The parts of a packed value, inside of it, or of one that tells where they are. Local, keeps no
/// state. Throws corrupt when `value` is neither, of `count` parts.
std::vector<std::span<const std::byte>> split_parts(std::span<const std::byte> value,
                                                    std::size_t count);
/// The same into memory of the caller, one span a part: allocates nothing.
void split_parts(std::span<const std::byte> value, std::span<std::span<const std::byte>> parts);

}  // namespace forebay
