// Numbers in the names of data sets, and the order of names by what these are.
//
//   img_12        12       the digits that follow each other
//   t_0.25        0.25     a decimal is one number; "1.2.3" are three
//   x_-6, -6      -6       a '-' behind a letter or digit parts words: img-6 has the number 6
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace forebay::hdf5 {

struct NumberPlace {
  std::size_t begin = 0;
  std::size_t end = 0;
};
std::vector<NumberPlace> numbers_in(std::string_view name);

/// By bytes, but numbers by their value: "s9" comes before "s10", "-6" before "5", "0.25" before
/// "0.5". Behind points these are counted, not digits of a value, where they end in a 0 that others
/// lack: v1.9, v1.10.
class NameOrder {
 public:
  explicit NameOrder(std::span<const std::string> names);
  bool operator()(std::string_view a, std::string_view b) const;

 private:
  int compare(std::string_view number, std::string_view other) const;

  bool counts_behind_points_ = false;
};

}  // namespace forebay::hdf5
