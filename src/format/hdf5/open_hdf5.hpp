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
/// sample; chosen ones may have a '*' for what tells samples apart. Uses libhdf5 until it returns;
/// see driver.hpp. Throws not_found, unsupported, corrupt, io, usage; naming file and data set.
std::unique_ptr<DataSet> open_hdf5(const std::string& text, DataFiles files,
                                   std::span<const FieldChoice> choices);

// Data sets of which each sample has its own.
//
//   0001/image 0001/label 0002/image ...    "*/image", "*/label": '*' stands for what tells samples
//   img_0 img_1 ...                         "img_*"                apart, inside of a step of a
//   path

struct NamedSamples {
  std::vector<std::string> patterns;
  std::vector<std::string> keys;    ///< what '*' stands for, in the order of samples
  std::vector<std::string> others;  ///< names that belong to no sample
  std::string lacking;              ///< which sample has not what others have, if one has not

  std::string at(std::size_t pattern, std::size_t sample) const;  ///< a name
  bool in_groups() const;                                         ///< each sample is a group
};

/// The samples that `patterns`, each with one '*', make of `names`: by name, numbers in
/// names by what they are.
/// Throws not_found for a pattern of nothing.
NamedSamples match_samples(std::span<const std::string> names, std::vector<std::string> patterns);
/// Those that names alone suggest.
std::optional<NamedSamples> find_samples(std::span<const std::string> names);

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
