// What the first samples of a data set tell of its values. By one rank for all.
#pragma once

#include <cstdint>
#include <string>

#include "forebay/dataset.hpp"
#include "read/data_access.hpp"

namespace forebay {

/// The first record, which tells the codec, and one data set from another of the same shape.
struct FirstRecord {
  std::string digest;
  std::string key;    ///< of `sample`
  std::string value;  ///< of `sample`; only where the codec is told by it
  std::uint64_t value_bytes = 0;
  std::uint64_t sample = 0;  ///< a later one where the first says nothing of the others
};

/// Tells the codec's `options` and the value to make it by. A sample that cannot be decoded does
/// not count where such are skipped, nor does an empty one; where all are empty, they are bytes.
FirstRecord look_at_values(DataAccess& data, std::uint64_t entries, bool may_skip,
                           CodecOptions& options);

}  // namespace forebay
