// One data set of an HDF5 file, as a field: rows along its first dimension.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "forebay/dataset.hpp"
#include "format/field_storage.hpp"
#include "format/hdf5/driver.hpp"

namespace forebay::hdf5 {

struct Dataset {
  std::string stored;  ///< path in the file
  std::uint64_t rows = 0;
  Field field;  ///< of one row; named after `stored`
  std::shared_ptr<const FieldStorage> storage;
};

/// Whether the data set has a first dimension: single values have none and are not samples.
bool has_rows(hid_t dataset);

/// Reads what the file says about the open data set `id`. All offsets lie inside the file.
/// Throws unsupported, corrupt, naming file and data set.
Dataset read_dataset(const Library& library, DriverState& state, hid_t id,
                     const std::string& stored);

}  // namespace forebay::hdf5
