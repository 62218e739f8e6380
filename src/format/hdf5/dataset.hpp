// One data set of an HDF5 file, as a field: rows along its first dimension.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "forebay/dataset.hpp"
#include "format/field_files.hpp"
#include "format/field_storage.hpp"
#include "format/hdf5/chunked_field.hpp"
#include "format/hdf5/driver.hpp"

namespace forebay::hdf5 {

// The type of a data set's elements, as far as Forebay reads it.
//
//   integers and floats of 1, 2, 4, 8 bytes, both byte orders    the same in this machine's order
//   enumerations (h5py writes bool as one)                       their integer; h5py's bool is u8
//   arrays                                                       dimensions of the field
//   fixed-length strings, opaque                                 u8[length]
//   everything else (compound, variable length, references,      refused, with what to do
//   unusual widths and floats)

struct ElementLayout {
  ElementType type = ElementType::u8;
  std::vector<std::uint64_t>
      shape;               ///< inside one element: an array's dimensions, a string's length
  std::uint32_t swap = 0;  ///< width of numbers to turn around; 0: none
};

/// Throws unsupported, saying what the elements are and what to do; the caller adds the place.
ElementLayout element_layout(hid_t type);

struct Dataset {
  std::string stored;  ///< path in the file
  std::uint64_t rows = 0;
  Field field;  ///< of one row; named after `stored`
  std::shared_ptr<const FieldStorage> storage;
};

/// Its dimensions; none of a single value. Throws unsupported, corrupt.
std::vector<std::uint64_t> shape_of(hid_t dataset);

/// What one sample is of a data set.
enum class SampleIs : std::uint8_t { row, whole };

/// Reads what the file says about the open data set `id`. All offsets lie inside the file.
/// Throws unsupported, corrupt, naming file and data set.
Dataset read_dataset(const Library& library, DriverState& state, hid_t id,
                     const std::string& stored, SampleIs sample = SampleIs::row);

/// Data sets of one field, of which each is one row, as a field. Not empty.
std::shared_ptr<const FieldStorage> one_behind_the_other(std::span<const Dataset> datasets);

/// What a file, or a group of it, has names for: paths from the file's root, each list sorted.
struct Listing {
  std::vector<std::string> datasets;  ///< that hard links lead to, each under one of its names
  std::vector<std::string> with_attributes;  ///< and groups
  std::vector<std::string> aliases;          ///< more hard links, to what has a name already
  std::vector<std::string> soft;             ///< links within the file
  std::vector<std::string> external;         ///< links to other files

  std::vector<std::string> links() const;  ///< all that is no data set under its one name
};
/// `group` is a path, perhaps empty, without '/' at its ends. Throws corrupt, io.
Listing list_names(const Library& library, const DriverState& state, hid_t file,
                   const std::string& group = {});
/// Whether a soft link leads to something in its own file.
bool leads_somewhere(hid_t file, const std::string& link);

/// Where an external link leads to.
struct Elsewhere {
  std::string file;  ///< as the link has it
  std::string object;
};
/// Nothing unless `path`, or what it begins with, is such a link.
std::optional<Elsewhere> external_link(hid_t file, const std::string& path);
/// What a dangling link names that `path` is, or begins with; nothing where there is none.
std::optional<std::string> dangling_target(hid_t file, const std::string& path);

/// What one file holds.
struct FileContent {
  /// Empty where samples have data sets of their own, and these are of different lengths.
  std::vector<FileField> fields = {};
  // Of samples that have data sets of their own.
  std::vector<std::string> keys = {};
  std::vector<std::vector<Dataset>> parts = {};  ///< by name, then by sample
};

/// The data sets of `choices`, or without any all that are of samples; `notes` get what is guessed
/// and left out. Uses the library until it returns. Throws not_found, unsupported, corrupt, io,
/// usage.
FileContent read_file(const std::shared_ptr<const File>& file, std::span<const FieldChoice> choices,
                      std::vector<std::string>& notes);

/// Throws what open_hdf5() does where the content of its only file is none that it can open.
void require_readable(const FileContent& content);

// The chunks of a data set: their shape, their filters, and where each is.
//
// The caller adds file and data set to errors.

/// Sets layout.chunk. Throws corrupt for shapes that the format does not allow.
void read_chunk_shape(hid_t properties, ChunkedLayout& layout);

/// Sets layout.filters and layout.edges_unfiltered. Throws unsupported, corrupt.
void read_filters(hid_t properties, ChunkedLayout& layout);

/// Sets layout.places, each checked against the file. One lookup of O(log n) for each place of the
/// grid, or, where few of them have a chunk, for each chunk; see driver.hpp. Throws corrupt, io.
void find_chunks(const Library& library, DriverState& state, hid_t dataset, ChunkedLayout& layout);

}  // namespace forebay::hdf5
