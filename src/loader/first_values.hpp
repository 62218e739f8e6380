// What the first samples of a data set tell of its values. By one rank for all.
#pragma once

#include <cstdint>
#include <string>

#include "format/codec/codecs.hpp"
#include "read/data_access.hpp"

namespace forebay {

/// What tells one data set from another of the same shape, and the codec.
struct FirstValues {
  std::string digest;  ///< of the first value
  std::uint64_t value_bytes = 0;
  TellingSample telling;
};

/// `may_skip`: samples that do not decode may be left out.
FirstValues look_at_values(DataAccess& data, std::uint64_t entries, bool may_skip,
                           const CodecOptions& options);

}  // namespace forebay
