// How one field of a file is stored: where its rows are, and how their bytes become values.
//
// A row is the field's value of one sample. Row lists are ascending and name each row once. Where
// rows cannot be used as they lie, a list splits into units: each decodes a stretch of the list, or
// a part of these rows, and different units may run in different threads.
//
//   StridedField   rows at equal distances: raw records, .npy, contiguous HDF5
//   ChunkedField   HDF5 chunks, filtered or not
//   CompactField   rows in memory since open: HDF5's compact layout, compressed arrays of .npz
//
// Implementations are immutable and safe to use from many threads at once.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "core/non_copyable.hpp"
#include "format/data_set.hpp"

namespace forebay {

/// Rows at equal distances in a file.
struct StridedLayout {
  std::uint64_t first = 0;      ///< offset of row 0
  std::uint64_t stride = 0;     ///< from row to row
  std::uint64_t row_bytes = 0;  ///< <= stride
  std::uint32_t swap = 0;       ///< width of numbers whose bytes must be reversed; 0: none
};

/// Work that decodes rows [first, first + count) of a row list, or a part of them.
struct DecodeUnit {
  std::uint64_t piece = 0;  ///< known to the storage: the chunk
  std::uint64_t first = 0;
  std::uint64_t count = 0;
};

class FieldStorage : private NonCopyable {
 public:
  virtual ~FieldStorage() = default;

  /// Whether rows can be used where they lie; if so units() adds none, and value() works.
  virtual bool in_place() const = 0;
  /// Whether value() lies in the bytes of the file, not in memory of the storage itself.
  virtual bool in_file() const { return true; }
  /// Where all rows are, if that is so simple; else null.
  virtual const StridedLayout* layout() const { return nullptr; }
  /// So many rows, counted from the first, have to be decoded together; 1: each by itself.
  virtual std::uint64_t rows_together() const { return 1; }
  /// Appends what `rows` need, in any order; touching extents need not be joined.
  virtual void extents(std::span<const std::uint64_t> rows, std::uint32_t file,
                       std::vector<FileExtent>& out) const = 0;
  /// The bytes of `row`, in place.
  virtual std::span<const std::byte> value(std::uint64_t row, std::uint32_t file,
                                           const FileBytes& bytes) const = 0;
  virtual void units(std::span<const std::uint64_t> rows, std::vector<DecodeUnit>& out) const = 0;
  /// Decodes `unit` of `rows` into `out`, the densely packed rows of the whole list. Returns the
  /// bytes that filters produced; 0 without filters. Throws corrupt, naming the offset.
  virtual std::uint64_t decode(const DecodeUnit& unit, std::span<const std::uint64_t> rows,
                               std::uint32_t file, const FileBytes& bytes, std::span<std::byte> out,
                               DecodeSpace& space) const = 0;
  /// What reading does not check: throws corrupt, without the file, where the bytes of all rows are
  /// not those that a checksum was made of.
  virtual void check(const File& /*file*/) const {}
  /// The part of its values that was ever written.
  virtual double written() const { return 1; }
  /// "contiguous", "chunks of 16x64x64, shuffle, deflate 4": for inspect.
  virtual std::string describe() const = 0;
};

/// Reverses the bytes of every number of `width` bytes; 0 and 1 leave all as it is.
void swap_bytes(std::span<std::byte> numbers, std::uint32_t width);

/// Calls run(first position in `rows`, first row, count) for each stretch of rows that follow each
/// other, in an ascending list.
template <typename Run>
void for_each_run(std::span<const std::uint64_t> rows, Run&& run) {
  for (std::size_t begin = 0; begin < rows.size();) {
    std::size_t end = begin + 1;
    while (end < rows.size() && rows[end] == rows[end - 1] + 1) ++end;
    run(begin, rows[begin], static_cast<std::uint64_t>(end - begin));
    begin = end;
  }
}

}  // namespace forebay
