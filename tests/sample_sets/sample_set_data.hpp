// Data sets of files with fields, and what a loader has to deliver of them: each sample as one
// value, its fields one behind the other in this machine's byte order.
#pragma once

#include <cstring>
#include <string>
#include <vector>

#include "tests/loader/draw_data.hpp"
#include "tests/support/hdf5_builder.hpp"
#include "tests/support/temporary_folder.hpp"

namespace forebay::test {

inline std::string text_of(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

/// Files with the same fields and so many rows each; the recipes' shapes have no rows yet.
inline DrawData hdf5_data(const TemporaryFolder& folder, const std::string& name,
                          const std::vector<Hdf5Recipe>& recipes,
                          const std::vector<std::uint64_t>& rows) {
  std::vector<OracleRecord> records;
  std::string path;
  for (std::size_t file = 0; file < rows.size(); ++file) {
    const std::string of_file = folder.file(name + std::to_string(file) + ".h5");
    Hdf5Builder builder;
    std::vector<Hdf5Recipe> fields = recipes;
    for (Hdf5Recipe& field : fields) {
      field.shape.insert(field.shape.begin(), rows[file]);
      field.grows = !field.chunk.empty();  // or chunks must not be larger
      builder.add(field);
    }
    builder.build(of_file);
    path += (path.empty() ? "" : ",") + of_file;
    for (std::uint64_t row = 0; row < rows[file]; ++row) {
      std::string value;
      for (const Hdf5Recipe& field : fields) value += text_of(hdf5_row(field, row));
      records.push_back({"", value});
    }
  }
  return {path, records};
}

/// Records of a u16 and a u8[5], 9 bytes from one to the next, behind a header of 13 bytes.
inline DrawData raw_data(const TemporaryFolder& folder, std::uint64_t rows, bool big_endian) {
  const std::string path = folder.file(big_endian ? "big.bin" : "little.bin");
  std::vector<std::byte> bytes(13 + rows * 9);
  std::vector<OracleRecord> records;
  for (std::uint64_t row = 0; row < rows; ++row) {
    const auto number = static_cast<std::uint16_t>(row * 257 + 3);
    std::string value(reinterpret_cast<const char*>(&number), 2);
    for (int i = 0; i < 5; ++i) value += static_cast<char>(row * 31 + static_cast<unsigned>(i));
    std::string stored = value;
    if (big_endian) std::swap(stored[0], stored[1]);
    std::memcpy(&bytes[13 + row * 9], stored.data(), stored.size());
    records.push_back({"", value});
  }
  write_bytes(path, bytes);
  return {path, records};
}

/// Makes `options` fit files of raw_data().
inline LoaderOptions raw_options(LoaderOptions options, bool big_endian) {
  options.format = "raw";
  options.schema = "number:u16[],text:u8[5]";
  options.header_bytes = 13;
  options.record_bytes = 9;
  options.big_endian = big_endian;
  return options;
}

}  // namespace forebay::test
