// Files of records of one size, one behind the other, after a header that is skipped.
//
//   header_bytes   record 0                           record 1
//   [..........]   [field a][field b]...[padding]     [field a][field b]...
//
// CIFAR-10's binary version is such a file: a label byte and 3 x 32 x 32 pixels, without a header.
#pragma once

#include <memory>
#include <string>

#include "format/field_set.hpp"
#include "format/registry.hpp"

namespace forebay::raw {

struct RecordLayout {
  std::string schema;              ///< fields in the order of their bytes, "label:u8[],x:f32[3x4]"
  std::uint64_t header_bytes = 0;  ///< skipped at the start of every file
  std::uint64_t record_bytes = 0;  ///< from record to record; 0: what the fields have
  bool big_endian = false;         ///< byte order of the numbers in the files
};

/// "label:u8[],image:u8[3x32x32]"
RecordLayout cifar10_layout();

/// Whether the file may be of CIFAR-10's binary version: whole records whose labels are 0 to 9, at
/// the first and the last, under the name that the collection has ("data_batch_1.bin").
bool is_cifar10(const File& file);

/// Opens `files` as one data set that the user named `text`. `format` is told to the user.
/// Throws not_found, corrupt when a file is not a whole number of records, io, usage.
std::unique_ptr<DataSet> open_raw(const std::string& text, DataFiles files,
                                  std::span<const FieldChoice> choices, const std::string& format,
                                  const RecordLayout& layout);
Format raw_format();
Format cifar10_format();

// NumPy .npy files as a data set of one field: a sample is what lies under one index of the first
// dimension.

/// Opens `files` as one data set that the user named `text`. The field is "data", or as chosen
/// ("FILE#image=data"). Throws not_found, unsupported, corrupt, io, usage.
std::unique_ptr<DataSet> open_npy(const std::string& text, DataFiles files,
                                  std::span<const FieldChoice> choices);
Format npy_format();

}  // namespace forebay::raw
