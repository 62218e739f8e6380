#include "format/hdf5/chunked_field.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstring>

#include "forebay/error.hpp"
#include "format/field_storage.hpp"

namespace forebay::hdf5 {
namespace {

std::uint64_t product(std::span<const std::uint64_t> sizes) {
  std::uint64_t result = 1;
  for (const std::uint64_t size : sizes) result *= size;
  return result;
}

/// Calls band(number, first position, count) for stretches of `rows` that share a band.
template <typename Band>
void for_each_band(std::span<const std::uint64_t> rows, std::uint64_t band_rows, Band&& band) {
  for (std::size_t begin = 0; begin < rows.size();) {
    const std::uint64_t number = rows[begin] / band_rows;
    std::size_t end = begin + 1;
    while (end < rows.size() && rows[end] / band_rows == number) ++end;
    band(number, begin, end - begin);
    begin = end;
  }
}

}  // namespace

ChunkedField::ChunkedField(ChunkedLayout layout) : layout_(std::move(layout)) {
  const std::span shape = std::span(layout_.shape).subspan(1);
  const std::span chunk = std::span(layout_.chunk).subspan(1);
  for (std::size_t d = 1; d < layout_.shape.size(); ++d) chunks_a_band_ *= layout_.grid(d);
  row_bytes_ = product(shape) * layout_.element_bytes;
  chunk_row_bytes_ = product(chunk) * layout_.element_bytes;
  chunk_bytes_ = layout_.chunk[0] * chunk_row_bytes_;
  in_place_ = layout_.filters.empty() && layout_.swap <= 1 && std::ranges::equal(shape, chunk) &&
              std::ranges::all_of(layout_.places, [](const ChunkPlace& p) { return p.length > 0; });
}

bool ChunkedField::sticks_out(std::uint64_t chunk) const {
  for (std::size_t d = layout_.shape.size(); d-- > 0;) {
    const std::uint64_t at = chunk % layout_.grid(d);
    if ((at + 1) * layout_.chunk[d] > layout_.shape[d]) return true;
    chunk /= layout_.grid(d);
  }
  return false;
}

bool ChunkedField::is_stored_plain(std::uint64_t chunk) const {
  return layout_.filters.empty() || (layout_.edges_unfiltered && sticks_out(chunk));
}

void ChunkedField::extents(std::span<const std::uint64_t> rows, std::uint32_t file,
                           std::vector<FileExtent>& out) const {
  if (row_bytes_ == 0) return;
  for_each_band(rows, layout_.chunk[0], [&](std::uint64_t band, std::size_t begin, std::size_t n) {
    for (std::uint64_t i = 0; i < chunks_a_band_; ++i) {
      const std::uint64_t chunk = band * chunks_a_band_ + i;
      const ChunkPlace& place = layout_.places[chunk];
      if (place.length == 0) continue;
      if (!is_stored_plain(chunk)) {
        out.push_back({.file = file, .offset = place.offset, .length = place.length});
        continue;
      }
      for_each_run(rows.subspan(begin, n),
                   [&](std::size_t, std::uint64_t row, std::uint64_t count) {
                     const std::uint64_t in_band = row - band * layout_.chunk[0];
                     out.push_back({.file = file,
                                    .offset = place.offset + in_band * chunk_row_bytes_,
                                    .length = count * chunk_row_bytes_});
                   });
    }
  });
}

std::span<const std::byte> ChunkedField::value(std::uint64_t row, std::uint32_t file,
                                               const FileBytes& bytes) const {
  if (row_bytes_ == 0) return {};
  const std::uint64_t band = band_of(row);
  const std::uint64_t in_band = row - band * layout_.chunk[0];
  return bytes.at(file, layout_.places[band].offset + in_band * row_bytes_, row_bytes_);
}

void ChunkedField::units(std::span<const std::uint64_t> rows, std::vector<DecodeUnit>& out) const {
  if (in_place_ || row_bytes_ == 0) return;
  for_each_band(rows, layout_.chunk[0], [&](std::uint64_t band, std::size_t begin, std::size_t n) {
    for (std::uint64_t i = 0; i < chunks_a_band_; ++i) {
      out.push_back({.piece = band * chunks_a_band_ + i, .first = begin, .count = n});
    }
  });
}

/// Dimensions that the chunk fills join the run, so whole rows are one copy.
ChunkedField::Box ChunkedField::box_of(std::uint64_t chunk) const {
  Box box;
  std::uint64_t from_bytes = layout_.element_bytes;
  std::uint64_t to_bytes = layout_.element_bytes;
  box.run_bytes = layout_.element_bytes;
  bool joined = true;  // all dimensions so far are one run, in the chunk and in the row
  std::uint64_t rest = chunk % chunks_a_band_;
  for (std::size_t d = layout_.shape.size(); d-- > 1;) {
    const std::uint64_t at = rest % layout_.grid(d);
    rest /= layout_.grid(d);
    const std::uint64_t origin = at * layout_.chunk[d];
    const std::uint64_t inside = std::min(layout_.chunk[d], layout_.shape[d] - origin);
    box.start += origin * to_bytes;
    if (joined) {
      box.run_bytes *= inside;
      joined = inside == layout_.chunk[d] && inside == layout_.shape[d];
    } else {
      box.counts.insert(box.counts.begin(), inside);
      box.from.insert(box.from.begin(), from_bytes);
      box.to.insert(box.to.begin(), to_bytes);
    }
    from_bytes *= layout_.chunk[d];
    to_bytes *= layout_.shape[d];
  }
  return box;
}

/// Calls run(offset in the chunk's row, offset in the whole row).
template <typename Run>
void ChunkedField::for_each_copy(const Box& box, Run&& run) {
  if (box.counts.empty()) return run(std::uint64_t{0}, box.start);
  std::vector<std::uint64_t> at(box.counts.size(), 0);
  std::uint64_t from = 0;
  std::uint64_t to = box.start;
  while (true) {
    run(from, to);
    std::size_t d = box.counts.size();
    while (d > 0) {
      --d;
      from += box.from[d];
      to += box.to[d];
      if (++at[d] < box.counts[d]) break;
      from -= box.from[d] * box.counts[d];
      to -= box.to[d] * box.counts[d];
      at[d] = 0;
      if (d == 0) return;
    }
  }
}

void ChunkedField::copy_row(const Box& box, std::span<const std::byte> from,
                            std::span<std::byte> row) const {
  for_each_copy(box, [&](std::uint64_t source, std::uint64_t target) {
    std::memcpy(&row[target], &from[source], box.run_bytes);
    swap_bytes(row.subspan(target, box.run_bytes), layout_.swap);
  });
}

void ChunkedField::fill_rows(const Box& box, std::span<std::byte> rows) const {
  const bool zero =
      std::ranges::all_of(layout_.fill, [](std::byte byte) { return byte == std::byte{0}; });
  for (std::uint64_t row = 0; row < rows.size(); row += row_bytes_) {
    for_each_copy(box, [&](std::uint64_t, std::uint64_t target) {
      const auto run = rows.subspan(row + target, box.run_bytes);
      if (zero) {
        std::memset(run.data(), 0, run.size());
        return;
      }
      for (std::uint64_t i = 0; i < run.size(); i += layout_.fill.size()) {
        std::memcpy(&run[i], layout_.fill.data(), layout_.fill.size());
      }
    });
  }
}

std::uint64_t ChunkedField::decode(const DecodeUnit& unit, std::span<const std::uint64_t> rows,
                                   std::uint32_t file, const FileBytes& bytes,
                                   std::span<std::byte> out, DecodeSpace& space) const {
  const ChunkPlace& place = layout_.places[unit.piece];
  const Box box = box_of(unit.piece);
  const auto target = out.subspan(unit.first * row_bytes_, unit.count * row_bytes_);
  if (place.length == 0) {
    fill_rows(box, target);
    return 0;
  }
  const std::uint64_t first_row = unit.piece / chunks_a_band_ * layout_.chunk[0];
  const bool plain = is_stored_plain(unit.piece);
  std::span<const std::byte> whole;
  if (!plain) {
    try {
      whole = undo_filters(layout_.filters, place.skipped,
                           bytes.at(file, place.offset, place.length), chunk_bytes_, space);
    } catch (const Error& error) {
      throw error.within({.offset = place.offset});
    }
  }
  for (std::uint64_t i = 0; i < unit.count; ++i) {
    const std::uint64_t at = (rows[unit.first + i] - first_row) * chunk_row_bytes_;
    const auto from = plain ? bytes.at(file, place.offset + at, chunk_row_bytes_)
                            : whole.subspan(at, chunk_row_bytes_);
    copy_row(box, from, target.subspan(i * row_bytes_, row_bytes_));
  }
  return plain ? 0 : chunk_bytes_;
}

double ChunkedField::written() const {
  if (layout_.places.empty()) return 1;
  const auto missing =
      std::ranges::count_if(layout_.places, [](const ChunkPlace& p) { return p.length == 0; });
  return 1 - static_cast<double>(missing) / static_cast<double>(layout_.places.size());
}

std::string ChunkedField::describe() const {
  std::string text = fmt::format("chunks of {}", fmt::join(layout_.chunk, "x"));
  if (!layout_.filters.empty()) text += ", " + hdf5::describe(layout_.filters);
  const auto missing =
      std::ranges::count_if(layout_.places, [](const ChunkPlace& p) { return p.length == 0; });
  if (missing > 0) text += fmt::format(", {} of {} never written", missing, layout_.places.size());
  return text;
}

}  // namespace forebay::hdf5
