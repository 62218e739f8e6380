// Files of which each sample is a row of some fields: opened as one data set, whatever the format
// is.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "format/dataset_files.hpp"
#include "format/field_set.hpp"

namespace forebay {

/// A field of one file.
struct FileField {
  Field field;
  std::shared_ptr<const FieldStorage> storage;
};
/// The samples of one file.
struct FileFields {
  std::uint64_t rows = 0;
  std::vector<FileField> fields;
};
/// Throws corrupt, unsupported, io, usage; the file is named by the caller.
using ReadFields = std::function<FileFields(const std::shared_ptr<const File>&)>;

/// `files`, as the user named them by `text`, one behind the other: the fields that `read` finds,
/// or those of `choices`, in that order and under the names that they give. `notes` are looked at
/// when all files are read. Throws usage for two fields of one name and for files of different
/// fields, not_found for a choice that is not there, and what `read` throws.
std::unique_ptr<DataSet> open_fields(const std::string& text, const std::string& format,
                                     DataFiles files, std::span<const FieldChoice> choices,
                                     const ReadFields& read,
                                     const std::vector<std::string>& notes = {});

}  // namespace forebay
