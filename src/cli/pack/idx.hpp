// The IDX format of MNIST: 0, 0, element type, number of dimensions, then each dimension as four
// bytes, most significant first, then the elements.
#pragma once

#include <cstdint>
#include <vector>

#include "cli/pack/input_file.hpp"

namespace forebay::pack {

struct IdxHeader {
  std::vector<std::uint32_t> dimensions;
  std::uint64_t bytes = 0;  ///< of the header itself
};

/// Whether the file starts as IDX files do.
bool is_idx(InputFile& file);

/// Throws corrupt when it is not an IDX file, unsupported when its elements are not bytes.
IdxHeader read_idx_header(InputFile& file);

}  // namespace forebay::pack
