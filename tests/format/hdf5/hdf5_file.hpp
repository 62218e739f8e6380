// An HDF5 file for the length of a test.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "format/registry.hpp"
#include "tests/support/hdf5_builder.hpp"
#include "tests/support/sample_checks.hpp"
#include "tests/support/temporary_folder.hpp"

namespace forebay::test {

class Hdf5File {
 public:
  explicit Hdf5File(const Hdf5Builder& builder) { builder.build(path()); }
  explicit Hdf5File(const Hdf5Recipe& recipe) : Hdf5File(Hdf5Builder().add(recipe)) {}

  std::string path() const { return folder_.file("data.h5"); }
  std::unique_ptr<DataSet> open(const std::string& fields = "",
                                Engine engine = Engine::pread) const {
    return open_data_set(path() + fields, {.engine = engine});
  }

 private:
  TemporaryFolder folder_;
};

inline std::vector<std::vector<std::byte>> rows_of(const Hdf5Recipe& recipe,
                                                   std::span<const std::uint64_t> ids) {
  std::vector<std::vector<std::byte>> rows;
  for (const std::uint64_t id : ids) rows.push_back(hdf5_row(recipe, id));
  return rows;
}

}  // namespace forebay::test
