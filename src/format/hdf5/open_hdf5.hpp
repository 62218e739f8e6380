// HDF5 files as a data set: every sample is one row of several data sets of a file, or has data
// sets of its own.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "format/field_set.hpp"
#include "format/registry.hpp"

namespace forebay::hdf5 {

/// Whether the file starts like HDF5: its signature at 0, or behind a user block of 512 * 2^n
/// bytes.
bool is_hdf5(const File& file);

/// Opens `files` as one data set that the user named `text`. Without chosen fields all data sets
/// with a first dimension are fields, by their path, unless their names say that each is of one
/// sample, or of a group that is a data set for itself; see layout.hpp. Uses libhdf5 until it
/// returns; see driver.hpp. Throws not_found, unsupported, corrupt, io, usage; naming file and data
/// set.
//
//   FILE#NAME,NAME    rows of these        FILE#NAME[:]    rows of all below this group, or of all
//   FILE#GROUP        as FILE, of this                     that NAME with a '*' stands for
//                     group alone          FILE#*/image    a sample each
std::unique_ptr<DataSet> open_hdf5(const std::string& text, DataFiles files,
                                   std::span<const FieldChoice> choices);

inline Format hdf5_format() {
  return {.name = "hdf5",
          .description =
              "HDF5 files: a sample is a row of their data sets, or has data sets of its own",
          .recognise = [](const FirstFile& first) { return first.file && is_hdf5(*first.file); },
          .open =
              [](const FormatRequest& request) {
                return open_hdf5(request.text, request.open_files(), request.found.fields);
              },
          .searches = true};
}

}  // namespace forebay::hdf5
