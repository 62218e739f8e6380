// What the text that names a data set of files with fields may look like.
//
//   FILES            one file, a pattern (*, ?, [...], {000..009}, {a,b}), or several of both,
//                    separated by commas;
//                    a file that exists under the whole name wins over patterns and commas;
//                    what a pattern matches is sorted by bytes, so number parts with equal widths
//   URLs             each file may be one (forebay/storage.hpp); on storage that is no file system
//                    there are no patterns
//   FILES#FIELDS     only these fields, in this order: NAME or NEW=NAME, separated by commas
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace forebay {

/// A field that the user asked for.
struct FieldChoice {
  std::string name;    ///< as samples will call it; empty: derived from `stored`
  std::string stored;  ///< as the file calls it
};

struct DatasetFiles {
  std::vector<std::string> files;   ///< at least one
  std::vector<FieldChoice> fields;  ///< empty: all
};

/// The files of a data set, whatever is written about their fields. Throws not_found for a file
/// that does not exist or a pattern without a match.
std::vector<std::string> find_files(const std::string& text);
/// Throws the same, and usage for fields that make no sense.
DatasetFiles find_dataset_files(const std::string& text);

/// `stored` with everything that a schema's text form cannot hold replaced: "a/b c" is "a.b_c".
std::string field_name(std::string_view stored);

/// A name out of a file, for messages: itself, also with spaces, unless it has bytes that terminals
/// cannot show.
std::string shown_name(std::string_view name);

}  // namespace forebay
