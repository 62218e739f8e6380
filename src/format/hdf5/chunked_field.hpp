// A field that HDF5 stores in chunks.
//
//   rows 0..        +-----------+-----------+      The grid of chunks, row-major. A band is a line
//   of
//     band 0        |  chunk 0  |  chunk 1 .:      it: chunks of the same rows. Chunks at the edge
//                   +-----------+-----------+      are stored whole; what lies outside of the data
//     band 1        |  chunk 2  |  chunk 3 .:      set (dots) is padding.
//                   +-----------+-----------+
//     band 2        :...........:..........x:
//
// Inside a chunk one row's numbers follow each other, so an unfiltered chunk is read by rows; a
// filtered one is read whole and decoded once for a row list. A chunk that was never written has no
// place in the file: its values are the fill value.
//
// Rows are used in place if there is one unfiltered chunk a band, exactly as wide as the rows, all
// chunks exist, and the byte order is this machine's. Else a unit is one chunk.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "format/field_storage.hpp"

namespace forebay::hdf5 {

// Undoing the filters of a chunk, in the calling thread.
//
//   written:  chunk -> filter 0 -> filter 1 -> ... -> stored bytes
//   read:     the other way round, leaving out those that the chunk's mask says were skipped
//
// libhdf5 is not involved, so any number of threads may decode at once.

enum class FilterKind : std::uint8_t { deflate, shuffle, fletcher32, szip, lzf };

struct Filter {
  FilterKind kind = FilterKind::deflate;
  std::vector<std::uint32_t> values;  ///< parameters, as the file has them
};

/// The remedy for what h5py reads and Forebay does not; read_dataset() adds the line that does it.
inline constexpr const char* kRewrite = "write the file anew";

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

/// What LZF made of `in`: returns the bytes written to `out`. Throws corrupt, also where that is
/// too small.
std::size_t decode_lzf(std::span<const std::byte> in, std::span<std::byte> out);

/// Where a chunk is; length 0: never written.
struct ChunkPlace {
  std::uint64_t offset = 0;
  std::uint32_t length = 0;
  std::uint32_t skipped = 0;  ///< filters that were not applied, a bit each
};

struct ChunkedLayout {
  std::vector<std::uint64_t> shape;  ///< of the data set, rows first
  std::vector<std::uint64_t> chunk;  ///< shape of a chunk, same rank, all >= 1
  std::uint64_t element_bytes = 1;
  std::uint32_t swap = 0;       ///< width of numbers to turn around; 0: none
  std::vector<std::byte> fill;  ///< one element, in this machine's byte order
  std::vector<Filter> filters;
  bool edges_unfiltered = false;   ///< chunks that stick out are stored as they are
  std::vector<ChunkPlace> places;  ///< of the grid, row-major

  /// Chunks along dimension `d`.
  std::uint64_t grid(std::size_t d) const { return (shape[d] + chunk[d] - 1) / chunk[d]; }
};

class ChunkedField final : public FieldStorage {
 public:
  /// The caller has checked that the sizes do not wrap and that places lie inside the file.
  explicit ChunkedField(ChunkedLayout layout);

  bool in_place() const override { return in_place_; }
  std::uint64_t rows_together() const override {
    return layout_.filters.empty() ? 1 : layout_.chunk[0];
  }
  void extents(std::span<const std::uint64_t> rows, std::uint32_t file,
               std::vector<FileExtent>& out) const override;
  std::span<const std::byte> value(std::uint64_t row, std::uint32_t file,
                                   const FileBytes& bytes) const override;
  void units(std::span<const std::uint64_t> rows, std::vector<DecodeUnit>& out) const override;
  std::uint64_t decode(const DecodeUnit& unit, std::span<const std::uint64_t> rows,
                       std::uint32_t file, const FileBytes& bytes, std::span<std::byte> out,
                       DecodeSpace& space) const override;
  std::string describe() const override;
  double written() const override;

 private:
  // How the numbers that a chunk holds of one row lie in the chunk's row and in the whole row.
  struct Box {
    std::vector<std::uint64_t> counts;  // of runs, outermost dimension first
    std::vector<std::uint64_t> from;    // bytes from run to run in the chunk's row
    std::vector<std::uint64_t> to;      // bytes from run to run in the whole row
    std::uint64_t start = 0;            // of the first run in the whole row
    std::uint64_t run_bytes = 0;
  };

  std::uint64_t band_of(std::uint64_t row) const { return row / layout_.chunk[0]; }
  bool sticks_out(std::uint64_t chunk) const;
  bool is_stored_plain(std::uint64_t chunk) const;
  Box box_of(std::uint64_t chunk) const;
  void fill_rows(const Box& box, std::span<std::byte> rows) const;
  void copy_row(const Box& box, std::span<const std::byte> from, std::span<std::byte> row) const;
  template <typename Run>
  static void for_each_copy(const Box& box, Run&& run);

  ChunkedLayout layout_;
  std::uint64_t chunks_a_band_ = 1;
  std::uint64_t row_bytes_ = 0;
  std::uint64_t chunk_row_bytes_ = 0;
  std::uint64_t chunk_bytes_ = 0;
  bool in_place_ = false;
};

}  // namespace forebay::hdf5
