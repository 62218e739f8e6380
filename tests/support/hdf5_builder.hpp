// HDF5 files for tests, written by libhdf5 itself.
//
//   Hdf5Builder builder;
//   builder.add({.name = "x", .shape = {100, 7}, .chunk = {10, 4}, .deflate = 6});
//   builder.build(path);
//
// Numbers are big-endian u16 (or u8): element i of a data set, in C order, has the value
// value(name, i).
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace forebay::test {

struct Hdf5Recipe {
  std::string name = "x";
  std::vector<std::uint64_t> shape = {10};
  std::vector<std::uint64_t> chunk = {};  ///< empty: contiguous
  int deflate = -1;                       ///< level; -1: none
  bool shuffle = false;
  bool fletcher32 = false;
  bool compact = false;
  bool edges_unfiltered = false;
  bool grows = false;                  ///< the first dimension has no limit
  bool early = false;                  ///< space is taken when the data set is made
  bool bytes = false;                  ///< u8 instead of u16
  bool native = false;                 ///< little-endian numbers
  std::uint64_t written = UINT64_MAX;  ///< rows that are written; the rest keeps the fill value 7
};

class Hdf5Builder {
 public:
  Hdf5Builder& add(Hdf5Recipe recipe) {
    recipes_.push_back(std::move(recipe));
    return *this;
  }
  /// Bytes in front of the file: 0, 512, 1024, ...
  Hdf5Builder& user_block(std::uint64_t bytes) {
    user_block_ = bytes;
    return *this;
  }
  /// Newest file format: other headers, other chunk indexes.
  Hdf5Builder& latest() {
    latest_ = true;
    return *this;
  }
  void build(const std::string& path) const;

 private:
  std::vector<Hdf5Recipe> recipes_;
  std::uint64_t user_block_ = 0;
  bool latest_ = false;
};

/// The number at `index` of a data set that was written whole.
inline std::uint16_t hdf5_value(const std::string& name, std::uint64_t index) {
  return static_cast<std::uint16_t>(index * 40503 / 7 + name.size() * 977 + name.back());
}

/// Row `row` as Forebay must hand it out, in this machine's byte order.
std::vector<std::byte> hdf5_row(const Hdf5Recipe& recipe, std::uint64_t row);

}  // namespace forebay::test
