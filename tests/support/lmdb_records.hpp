// LMDB databases of exactly these records, written by liblmdb alone.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "tests/support/lmdb_builder.hpp"

namespace forebay::test {

/// Puts `records` into the directory `directory`, which is made at need, in one transaction; what
/// is there already stays. `name`: of a named database.
void write_records(const std::string& directory, std::span<const OracleRecord> records,
                   const std::string& name = {});
inline void write_records(const std::string& directory, const std::vector<OracleRecord>& records,
                          const std::string& name = {}) {
  write_records(directory, std::span(records), name);
}

/// "image-" and 7 is "image-000000007".
std::string numbered(const std::string& prefix, std::uint64_t number, int width = 9);

/// Images of 0 to some thousand bytes and labels of 0 to 20, both from number `first` on, as
/// text-recognition databases have them, in no order.
std::vector<OracleRecord> grouped_records(std::uint64_t count, std::uint64_t first = 1,
                                          int width = 9);

/// What a reader has to give of grouped_records(): the number as key, image and label packed.
std::vector<OracleRecord> packed_samples(std::uint64_t count, std::uint64_t first = 1,
                                         int width = 9);
std::string packed(const std::vector<std::string>& parts);

}  // namespace forebay::test
