// The type of a data set's elements, as far as Forebay reads it.
//
//   integers and floats of 1, 2, 4, 8 bytes, both byte orders    the same in this machine's order
//   enumerations (h5py writes bool as one)                       their integer; h5py's bool is u8
//   arrays                                                       dimensions of the field
//   fixed-length strings, opaque                                 u8[length]
//   everything else (compound, variable length, references,      refused, with what to do
//   unusual widths and floats)
#pragma once

#include <string>
#include <vector>

#include "forebay/dataset.hpp"
#include "format/hdf5/library.hpp"

namespace forebay::hdf5 {

struct ElementLayout {
  ElementType type = ElementType::u8;
  std::vector<std::uint64_t>
      shape;               ///< inside one element: an array's dimensions, a string's length
  std::uint32_t swap = 0;  ///< width of numbers to turn around; 0: none
};

/// Throws unsupported, saying what the elements are and what to do; the caller adds the place.
ElementLayout element_layout(hid_t type);

}  // namespace forebay::hdf5
