// The chunks of a data set: their shape, their filters, and where each is.
//
// The caller adds file and data set to errors.
#pragma once

#include "format/hdf5/chunked_field.hpp"
#include "format/hdf5/driver.hpp"

namespace forebay::hdf5 {

/// Sets layout.chunk. Throws corrupt for shapes that the format does not allow.
void read_chunk_shape(hid_t properties, ChunkedLayout& layout);

/// Sets layout.filters and layout.edges_unfiltered. Throws unsupported, corrupt.
void read_filters(hid_t properties, ChunkedLayout& layout);

/// Sets layout.places, each checked against the file. One lookup of O(log n) for each place of the
/// grid, or, where few of them have a chunk, for each chunk; see driver.hpp. Throws corrupt, io.
void find_chunks(const Library& library, DriverState& state, hid_t dataset, ChunkedLayout& layout);

}  // namespace forebay::hdf5
