// What fuzz targets do with a data set that could be opened.
#pragma once

#include <cstdlib>
#include <numeric>
#include <vector>

#include "format/sample_reader.hpp"

namespace forebay {

inline void require(bool condition) {
  if (!condition) std::abort();
}

/// Every part of every sample. Returns the bytes of all.
inline std::uint64_t read_all(const DataSet& data) {
  std::vector<std::uint64_t> ids(data.facts().entries);
  std::iota(ids.begin(), ids.end(), std::uint64_t{0});
  SampleReader reader(data, {});
  reader.read(ids);
  std::uint64_t bytes = 0;
  for (std::size_t i = 0; i < ids.size(); ++i) {
    for (std::size_t p = 0; p < data.facts().part_count(); ++p) bytes += reader.part(i, p).size();
  }
  return bytes;
}

}  // namespace forebay
