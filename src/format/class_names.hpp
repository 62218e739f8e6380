// The names of what labels number: classes, by their numbers.
//
//   DEST/data.mdb   DEST/data.mdb.classes     beside packed records: a name a line, the first is
//                                             that of class 0
//
// Names are bytes, as file names are; a line end, a carriage return or a backslash in a name is
// written "\n", "\r" and "\\". Folders and zip archives tell their names themselves
// (DataSetFacts::labels).
//
// Data sets that are used together have to number the same things alike: require_same_numbers().
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace forebay {

using ClassNames = std::vector<std::string>;

/// Where the names lie of what `data_file` holds.
std::string class_names_path(const std::string& data_file);
/// Those that lie beside `data_file`; none where there is no such file. Throws corrupt, io.
ClassNames class_names_beside(const std::string& data_file);

/// That nothing has the number of that class.
std::string no_samples_note(const std::string& name);

/// That classes which are called as splits ("train", "val") or parts of samples ("images", "masks")
/// may be that; empty where they are not.
std::string doubtful_classes_note(std::span<const std::string> names);

/// As they are stored. parse_class_names() gives them back.
std::string class_names_text(std::span<const std::string> names);
/// Empty lines at the end are none. Throws corrupt, naming `path` and the line, for a name that is
/// empty or there twice.
ClassNames parse_class_names(std::string_view text, const std::string& path);

/// The names of `text`: a file of them, or a data set that has some. Throws not_found for a data
/// set that names none, and what opening it throws.
ClassNames class_names_of(const std::string& text);

/// Classes of a data set that `of` names.
struct NamedClasses {
  const std::string& of;
  std::span<const std::string> names;
};
/// For data sets that are used together, as a training set and its test set. Throws usage, naming
/// the first class that differs, where `other` numbers it otherwise than `first` does, or has one
/// that `first` has not. Fewer classes are alright, and so is a data set without names: how it
/// numbers them cannot be told. `remedy` says how both agree; empty: as `pack --classes` does.
void require_same_numbers(const NamedClasses& first, const NamedClasses& other,
                          const std::string& remedy = {});

}  // namespace forebay
