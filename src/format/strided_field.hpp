// Rows at equal distances in a file.
//
//   first           first + stride
//   [row 0] other   [row 1] other   [row 2]      stride == row bytes: nothing lies between
//
// Rows that follow each other are one extent, with what lies between them: few large reads win over
// few bytes, and what lies between is mostly another field of the same records.
#pragma once

#include <functional>
#include <utility>

#include "format/field_storage.hpp"

namespace forebay {

class StridedField final : public FieldStorage {
 public:
  /// As FieldStorage::check().
  using Check = std::function<void(const File&)>;

  /// The caller has checked that all rows lie inside the file.
  StridedField(const StridedLayout& layout, std::string description, Check check = {})
      : layout_(layout), description_(std::move(description)), check_(std::move(check)) {}

  bool in_place() const override { return layout_.swap <= 1; }
  const StridedLayout* layout() const override { return &layout_; }
  void extents(std::span<const std::uint64_t> rows, std::uint32_t file,
               std::vector<FileExtent>& out) const override;
  std::span<const std::byte> value(std::uint64_t row, std::uint32_t file,
                                   const FileBytes& bytes) const override;
  void units(std::span<const std::uint64_t> rows, std::vector<DecodeUnit>& out) const override;
  std::uint64_t decode(const DecodeUnit& unit, std::span<const std::uint64_t> rows,
                       std::uint32_t file, const FileBytes& bytes, std::span<std::byte> out,
                       DecodeSpace& space) const override;
  void check(const File& file) const override {
    if (check_) check_(file);
  }
  std::string describe() const override { return description_; }

 private:
  std::uint64_t offset_of(std::uint64_t row) const { return layout_.first + row * layout_.stride; }

  StridedLayout layout_;
  std::string description_;
  Check check_;
};

/// Whether `rows` rows of this layout end at or before `file_bytes`, without wrapping.
bool fits(const StridedLayout& layout, std::uint64_t rows, std::uint64_t file_bytes);

// Rows that are in memory since the data set was opened: HDF5 keeps small data sets (up to 64 KiB)
// in its own headers, and arrays that are compressed as a whole can be read in no other way.

class CompactField final : public FieldStorage {
 public:
  /// `values` are all rows, in this machine's byte order.
  CompactField(std::vector<std::byte> values, std::uint64_t row_bytes, std::string description)
      : values_(std::move(values)), row_bytes_(row_bytes), description_(std::move(description)) {}

  bool in_place() const override { return true; }
  bool in_file() const override { return false; }
  void extents(std::span<const std::uint64_t>, std::uint32_t,
               std::vector<FileExtent>&) const override {}
  std::span<const std::byte> value(std::uint64_t row, std::uint32_t,
                                   const FileBytes&) const override {
    return std::span(values_).subspan(row * row_bytes_, row_bytes_);
  }
  void units(std::span<const std::uint64_t>, std::vector<DecodeUnit>&) const override {}
  std::uint64_t decode(const DecodeUnit&, std::span<const std::uint64_t>, std::uint32_t,
                       const FileBytes&, std::span<std::byte>, DecodeSpace&) const override {
    return 0;
  }
  std::string describe() const override { return description_; }

 private:
  std::vector<std::byte> values_;
  std::uint64_t row_bytes_;
  std::string description_;
};

}  // namespace forebay
