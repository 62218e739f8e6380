// Files of which each sample is a row of some fields: opened as one data set, whatever the format
// is, and data sets of such files beside each other.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "format/dataset_files.hpp"
#include "format/field_set.hpp"

namespace forebay {

/// A field of one file.
struct FileField {
  Field field;
  std::shared_ptr<const FieldStorage> storage;
  std::uint64_t rows = 0;
  std::shared_ptr<const File> elsewhere = nullptr;  ///< the file that holds it, where another does
};
/// The fields of one file, of which all have as many rows. Throws corrupt, unsupported, io, usage;
/// the file is named by the caller.
using ReadFields = std::function<std::vector<FileField>(const std::shared_ptr<const File>&)>;

/// Throws usage for two fields of one name, and for fields of unequal lengths.
void require_together(std::span<const FileField> fields);

/// `files`, as the user named them by `text`, one behind the other: the fields that `read` finds,
/// or those of `choices`, in that order and under the names that they give. `notes` are looked at
/// when all files are read. Throws usage for two fields of one name, for fields of unequal lengths
/// and for files of different fields, not_found for a choice that is not there, and what `read`
/// throws.
std::unique_ptr<DataSet> open_fields(const std::string& text, const std::string& format,
                                     DataFiles files, std::span<const FieldChoice> choices,
                                     const ReadFields& read,
                                     const std::vector<std::string>& notes = {});

/// Data sets beside each other, each with the name that its field gets, or that goes in front of
/// the names of its fields: "x.image". Throws usage where samples of files have no fields, and for
/// files of unequal lengths.
std::unique_ptr<DataSet> join_fields(
    const std::string& text,
    std::span<const std::pair<std::string, std::unique_ptr<DataSet>>> sides);

}  // namespace forebay
