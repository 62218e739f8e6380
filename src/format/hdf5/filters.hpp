// Undoing the filters of a chunk, in the calling thread.
//
//   written:  chunk -> filter 0 -> filter 1 -> ... -> stored bytes
//   read:     the other way round, leaving out those that the chunk's mask says were skipped
//
// libhdf5 is not involved, so any number of threads may decode at once.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "format/field_storage.hpp"

namespace forebay::hdf5 {

enum class FilterKind : std::uint8_t { deflate, shuffle, fletcher32, szip };

struct Filter {
  FilterKind kind = FilterKind::deflate;
  std::vector<std::uint32_t> values;  ///< parameters, as the file has them
};

/// The filter number `id` of the HDF5 registry, called `name` in the file.
/// Throws unsupported for one that Forebay does not decode, corrupt for impossible parameters.
Filter make_filter(int id, const std::string& name, std::vector<std::uint32_t> values);

/// "shuffle, deflate 4"
std::string describe(std::span<const Filter> filters);

/// The chunk of exactly `chunk_bytes`, inside `stored` or `space`. Memory is taken for what the
/// stored bytes can become at most, not for what the shape claims. Throws corrupt.
std::span<const std::byte> undo_filters(std::span<const Filter> filters, std::uint32_t skipped,
                                        std::span<const std::byte> stored,
                                        std::uint64_t chunk_bytes, DecodeSpace& space);

}  // namespace forebay::hdf5
