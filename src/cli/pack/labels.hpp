// Labels that lie in a file of their own.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace forebay::pack {

/// Reads an IDX file of bytes (gzipped or not), or a text file with one whole number a line.
/// Throws not_found, io, corrupt.
std::vector<std::int32_t> read_labels(const std::string& path);

/// Throws corrupt unless there is one label a record.
void check_label_count(const std::vector<std::int32_t>& labels, std::uint64_t records,
                       const std::string& path);

}  // namespace forebay::pack
