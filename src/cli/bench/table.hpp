// A table of text: the first row is its head.
#pragma once

#include <string>
#include <vector>

namespace forebay::bench {

using Table = std::vector<std::vector<std::string>>;

/// Columns as wide as their widest cell; the first to the left, the others to the right.
std::string to_text(const Table& table);

}  // namespace forebay::bench
