// The header of a NumPy .npy file, versions 1 to 3.
//
//   0x93 'N' 'U' 'M' 'P' 'Y'   major   minor   length (2 bytes; from version 2 on 4), little-endian
//   {'descr': '<f4', 'fortran_order': False, 'shape': (60000, 28, 28), }      padded with spaces
//   data, C order, up to the end of the file
//
// The dictionary is a Python literal; only what NumPy writes for plain arrays is understood.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "forebay/dataset.hpp"
#include "forebay/storage.hpp"

namespace forebay::raw {

/// Bytes that npy_header_bytes() looks at.
inline constexpr std::size_t kNpyPreambleBytes = 12;
/// Longer headers are refused: NumPy itself refuses more than 10,000 characters.
inline constexpr std::uint64_t kMostNpyHeaderBytes = 65536;

struct NpyHeader {
  ElementType type = ElementType::u8;
  std::vector<std::uint64_t> shape;   ///< rows first; at least one dimension
  std::vector<std::uint64_t> inside;  ///< dimensions of one element: the length of a string
  std::uint32_t swap = 0;             ///< width of numbers to turn around; 0: none
  /// The first index runs fastest, and that makes a difference: more than one dimension is longer
  /// than 1.
  bool fortran = false;
  std::uint64_t data_offset = 0;

  Field row(const std::string& name) const;  ///< what lies under one index of the first dimension
  std::uint64_t rows() const { return shape[0]; }
};

/// Whether `start`, the first bytes of a file, are those of a .npy file.
bool is_npy(std::span<const std::byte> start);

/// Bytes up to the data, from the first kNpyPreambleBytes (or fewer, in a short file).
/// Throws corrupt, unsupported; the caller adds the file.
std::uint64_t npy_header_bytes(std::span<const std::byte> start);

/// Parses the first npy_header_bytes() of a file. Throws corrupt; unsupported for objects,
/// structures, dates, complex numbers and Unicode strings.
NpyHeader parse_npy_header(std::span<const std::byte> header);
/// Both of the above for a file. Throws unsupported also for Fortran order, and for an array
/// without dimensions.
NpyHeader read_npy_header(const File& file);

/// Throws unless the array that `header` tells of is all that `file` holds: corrupt where it is
/// longer or something else follows, unsupported where that is another array.
void require_only_array(const NpyHeader& header, const File& file);

/// Throws unsupported: an array of one value is no list of samples.
void require_rows(const NpyHeader& header);

}  // namespace forebay::raw
