// Labels that lie in a file of their own.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "cli/pack/input_file.hpp"

namespace forebay::pack {

// The IDX format of MNIST: 0, 0, element type, number of dimensions, then each dimension as four
// bytes, most significant first, then the elements.

struct IdxHeader {
  std::vector<std::uint32_t> dimensions;
  std::uint64_t bytes = 0;  ///< of the header itself
};

/// Whether the file starts as IDX files do.
bool is_idx(InputFile& file);

/// Throws corrupt when it is not an IDX file, unsupported when its elements are not bytes.
IdxHeader read_idx_header(InputFile& file);

/// Reads an IDX file of bytes (gzipped or not), or a text file with one whole number a line.
/// Throws not_found, io, corrupt.
std::vector<std::int32_t> read_labels(const std::string& path);

/// Throws corrupt unless there is one label a record.
void check_label_count(const std::vector<std::int32_t>& labels, std::uint64_t records,
                       const std::string& path);

}  // namespace forebay::pack
