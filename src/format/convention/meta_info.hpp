// meta_info.txt: how image-restoration programs (BasicSR) tell what is in a database beside it.
//
//   0001_s001.png (480,480,3) 1        file name, shape (height, width, channels), compression
//   level 000/00000002.png (720,1280,3) 1
//
// The key of a record is the file name without its extension; samples come in the order of lines.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace forebay::convention {

struct MetaLine {
  std::string name;                  ///< as written
  std::vector<std::uint64_t> shape;  ///< empty: not said

  /// `name` without its extension.
  std::string_view stem() const;
};

/// Larger files are refused.
inline constexpr std::uint64_t kMostMetaInfoBytes = std::uint64_t{1} << 30;

/// Throws corrupt naming `file` and the line for what is no such line, and for a name that appears
/// twice.
std::vector<MetaLine> parse_meta_info(std::string_view text, const std::string& file);

/// "480x480x3"
std::string shape_text(const std::vector<std::uint64_t>& shape);

}  // namespace forebay::convention
