// Fletcher's checksum as HDF5's filter writes it (Fletcher 1982, over 16-bit words).
#pragma once

#include <cstddef>
#include <span>

namespace forebay::hdf5 {

/// Whether `stored`, the four bytes behind `data`, are its checksum. Old libraries on big-endian
/// machines wrote the bytes of both halves swapped (before HDF5 1.6.3); that is accepted, too.
bool matches_fletcher32(std::span<const std::byte> data, std::span<const std::byte, 4> stored);

}  // namespace forebay::hdf5
