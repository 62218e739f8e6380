// Reading samples for tests.
#pragma once

#include <cstdint>
#include <numeric>
#include <span>
#include <vector>

#include "format/sample_reader.hpp"
#include "tests/support/error_from.hpp"

namespace forebay::test {

inline std::vector<std::uint64_t> ids_from(std::uint64_t first, std::uint64_t count) {
  std::vector<std::uint64_t> ids(count);
  std::iota(ids.begin(), ids.end(), first);
  return ids;
}

inline std::vector<std::byte> copy_of(std::span<const std::byte> bytes) {
  return {bytes.begin(), bytes.end()};
}

/// Field `field` of each id, read in one list.
inline std::vector<std::vector<std::byte>> read_field(const DataSet& source,
                                                      std::span<const std::uint64_t> ids,
                                                      std::size_t field = 0,
                                                      Engine engine = Engine::pread) {
  SampleReader reader(source, {.engine = engine, .bulk = {}, .gap_bytes = 0});
  reader.read(ids);
  std::vector<std::vector<std::byte>> values;
  for (std::size_t i = 0; i < ids.size(); ++i) values.push_back(copy_of(reader.part(i, field)));
  return values;
}

}  // namespace forebay::test
