#include "format/strided_field.hpp"

#include <algorithm>
#include <cstring>

#include "format/field_storage.hpp"

namespace forebay {
namespace {

// Enough for a thread to be worth waking, little enough to keep several threads busy.
constexpr std::uint64_t kUnitBytes = std::uint64_t{1} << 20;

}  // namespace

void StridedField::extents(std::span<const std::uint64_t> rows, std::uint32_t file,
                           std::vector<FileExtent>& out) const {
  if (layout_.row_bytes == 0) return;
  for_each_run(rows, [&](std::size_t, std::uint64_t row, std::uint64_t count) {
    out.push_back({.file = file,
                   .offset = offset_of(row),
                   .length = (count - 1) * layout_.stride + layout_.row_bytes});
  });
}

std::span<const std::byte> StridedField::value(std::uint64_t row, std::uint32_t file,
                                               const FileBytes& bytes) const {
  if (layout_.row_bytes == 0) return {};
  return bytes.at(file, offset_of(row), layout_.row_bytes);
}

void StridedField::units(std::span<const std::uint64_t> rows, std::vector<DecodeUnit>& out) const {
  if (in_place() || layout_.row_bytes == 0) return;
  const std::uint64_t step = std::max<std::uint64_t>(1, kUnitBytes / layout_.row_bytes);
  for (std::uint64_t first = 0; first < rows.size(); first += step) {
    out.push_back({.first = first, .count = std::min<std::uint64_t>(step, rows.size() - first)});
  }
}

std::uint64_t StridedField::decode(const DecodeUnit& unit, std::span<const std::uint64_t> rows,
                                   std::uint32_t file, const FileBytes& bytes,
                                   std::span<std::byte> out, DecodeSpace&) const {
  for (std::uint64_t i = unit.first; i < unit.first + unit.count; ++i) {
    const auto from = value(rows[i], file, bytes);
    const auto to = out.subspan(i * layout_.row_bytes, layout_.row_bytes);
    std::memcpy(to.data(), from.data(), to.size());
    swap_bytes(to, layout_.swap);
  }
  return 0;
}

bool fits(const StridedLayout& layout, std::uint64_t rows, std::uint64_t file_bytes) {
  if (rows == 0) return true;
  if (layout.row_bytes > file_bytes || layout.first > file_bytes - layout.row_bytes) return false;
  const std::uint64_t room = file_bytes - layout.row_bytes - layout.first;
  return layout.stride == 0 || rows - 1 <= room / layout.stride;
}

// The only place where numbers of another byte order are turned around.

namespace {

// Each number is loaded whole and stored whole, which compilers turn into vector shuffles.
template <std::size_t kWidth>
void swap_all(std::span<std::byte> numbers) {
  for (std::size_t i = 0; i + kWidth <= numbers.size(); i += kWidth) {
    std::byte number[kWidth];
    std::memcpy(number, &numbers[i], kWidth);
    std::reverse(number, number + kWidth);
    std::memcpy(&numbers[i], number, kWidth);
  }
}

}  // namespace

void swap_bytes(std::span<std::byte> numbers, std::uint32_t width) {
  switch (width) {
    case 2:
      return swap_all<2>(numbers);
    case 4:
      return swap_all<4>(numbers);
    case 8:
      return swap_all<8>(numbers);
    default:
      return;
  }
}

}  // namespace forebay
