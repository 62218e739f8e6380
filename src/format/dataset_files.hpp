// What the text that names a data set of files with fields may look like.
//
//   FILES            one file, a pattern (*, ?, [...], {000..009}, {a,b}), or several of both,
//                    separated by commas;
//                    a file that exists under the whole name wins over patterns and commas;
//                    what a pattern matches is sorted by bytes, so number parts with equal widths
//                    what stands in the name of a folder that exists is no pattern either;
//                    '\' before one of *?[]{},#&=\ takes it for itself: a\,b.npy
//   URLs             each file may be one (forebay/storage.hpp); on storage that is no file system
//                    there are no patterns
//   FILES#FIELDS     only these fields, in this order: NAME or NEW=NAME, separated by commas; with
//                    '\' before marks in names, too
//   x=FILES&y=FILES  beside each other, each perhaps with '#FIELDS': a sample has the fields of
//   both
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

/// What lies beside others under a name of its own.
struct NamedFiles {
  std::string name;
  std::string text;  ///< files, perhaps with '#FIELDS'
};

/// The pieces of `text` between separators that stand outside of braces and of names that exist,
/// with no '\' before them.
std::vector<std::string> split_names(const std::string& text, char separator);
/// `text` with each '\' that takes what follows for itself removed.
std::string without_escapes(std::string_view text);

/// The files that lie beside each other; none where `text` is not of that form, or names a file as
/// it stands. Throws usage where two have one name, or one is nothing.
std::vector<NamedFiles> files_beside(const std::string& text);

/// The files of a data set, whatever is written about their fields, also of those beside each
/// other. Throws not_found for a file that does not exist or a pattern without a match.
std::vector<std::string> find_files(const std::string& text);
/// Throws the same, and usage for fields that make no sense.
DatasetFiles find_dataset_files(const std::string& text);

/// What is said behind the '#' of `text`. Throws usage.
std::vector<FieldChoice> parse_fields(const std::string& fields, const std::string& text);

/// What `forebay pack` keeps beside data that it has not finished: DEST.partial/forebay-pack.json.
inline constexpr const char* kPackPlan = "forebay-pack.json";
/// Whether `path` is a folder that `forebay pack` was interrupted in. Patterns do not match it.
bool is_unfinished(const std::string& path);
/// Throws usage where it is.
void refuse_unfinished(const std::string& path);

/// `stored` with everything that a schema's text form cannot hold replaced: "a/b c" is "a.b_c".
std::string field_name(std::string_view stored);

/// The command that runs one line of Python on these words, which it finds in sys.argv from 1 on:
/// as a shell takes it. `line` has no single quotes.
std::string python_line(const std::string& line, const std::vector<std::string>& words);
/// A file beside `path`, for what a message proposes: its name without extension, and `end`.
std::string beside(const std::string& path, const std::string& end);

/// A name out of a file, for messages: itself, also with spaces, unless it has bytes that terminals
/// cannot show.
std::string shown_name(std::string_view name);

}  // namespace forebay
