// Rows that are in memory since the data set was opened: HDF5 keeps small data sets (up to 64 KiB)
// in its own headers.
#pragma once

#include <utility>

#include "format/field_storage.hpp"

namespace forebay {

class CompactField final : public FieldStorage {
 public:
  /// `values` are all rows, in this machine's byte order.
  CompactField(std::vector<std::byte> values, std::uint64_t row_bytes)
      : values_(std::move(values)), row_bytes_(row_bytes) {}

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
  std::string describe() const override { return "in the file's headers"; }

 private:
  std::vector<std::byte> values_;
  std::uint64_t row_bytes_;
};

}  // namespace forebay
