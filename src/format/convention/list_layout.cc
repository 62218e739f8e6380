// A database as the meta_info.txt beside it says: its order, and checks of its records.
#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "forebay/error.hpp"
#include "format/codec/image.hpp"
#include "format/convention/key_words.hpp"
#include "format/convention/layout.hpp"
#include "format/convention/meta_info.hpp"

namespace forebay::convention {
namespace {

std::vector<MetaLine> read_list(const std::string& path) {
  const auto file = open_file(path, Engine::pread);
  const std::uint64_t size = file->size();
  if (size > kMostMetaInfoBytes) {
    throw Error(ErrorKind::corrupt, fmt::format("{} bytes are no list of names", size),
                "use --convention plain", {.file = path});
  }
  std::string text(size, '\0');
  file->read(0, std::as_writable_bytes(std::span(text)));
  return parse_meta_info(text, path);
}

bool has_key(lmdb::Database& database, std::string_view key) {
  lmdb::Tree& tree = database.tree();
  const lmdb::Cursor cursor = tree.seek(key_bytes(key));
  return cursor.valid() && key_text(tree.node(cursor).key) == key;
}

/// Matches the lines of a list with the records of a database.
class Matching {
 public:
  Matching(lmdb::Database& database, const std::string& path)
      : database_(database), path_(path), lines_(read_list(path)) {
    if (database.entries() == 0 || lines_.empty()) return;
    // Some programs keep the extension in the key.
    whole_names_ = !has_key(database, lines_[0].stem()) && has_key(database, lines_[0].name);
  }

  RecordMap records() {
    std::vector<std::size_t> by_key(lines_.size());
    std::iota(by_key.begin(), by_key.end(), std::size_t{0});
    std::ranges::sort(by_key, {}, [this](std::size_t line) { return key(line); });
    std::vector<std::uint64_t> record_of(lines_.size());
    std::size_t next = 0;
    for_each_key(database_, [&](std::uint64_t record, std::string_view found) {
      if (next < by_key.size() && key(by_key[next]) < found) missing(by_key[next]);
      if (next == by_key.size() || key(by_key[next]) != found) unlisted(found);
      record_of[by_key[next++]] = record;
      return true;
    });
    if (next < by_key.size()) missing(by_key[next]);
    RecordMap map;
    for (const std::uint64_t record : record_of) map.add(record);
    return map;
  }

  /// Of the first, the last and the one in the middle.
  void check_shapes() {
    if (lines_.empty()) return;
    for (const std::size_t line : {std::size_t{0}, lines_.size() / 2, lines_.size() - 1}) {
      check_shape(line);
    }
  }

  std::size_t size() const { return lines_.size(); }

 private:
  std::string_view key(std::size_t line) const {
    return whole_names_ ? std::string_view(lines_[line].name) : lines_[line].stem();
  }

  [[noreturn]] void contradiction(const std::string& what, std::string_view key) const {
    throw Error(ErrorKind::corrupt,
                fmt::format("{}; the list has {} lines, the database {} records", what,
                            lines_.size(), database_.entries()),
                "make the list again, or read the records as they are with --convention plain",
                {.file = path_, .key = shown_key(key)});
  }
  [[noreturn]] void missing(std::size_t line) const {
    contradiction(
        fmt::format("line {} names a record that {} does not have", line + 1, database_.path()),
        key(line));
  }
  [[noreturn]] void unlisted(std::string_view found) const {
    contradiction(fmt::format("no line names a record of {}", database_.path()), found);
  }

  void check_shape(std::size_t line) {
    const std::vector<std::uint64_t>& said = lines_[line].shape;
    lmdb::Tree& tree = database_.tree();
    const lmdb::Cursor cursor = tree.seek(key_bytes(key(line)));
    if (said.size() < 2 || !cursor.valid()) return;
    const auto value = tree.entry(cursor).value;
    if (image_format(value) == ImageFormat::none) return;
    const ImageShape found = image_shape(value);
    // Channels differ by how a program reads gray and transparent images.
    if (found.height == said[0] && found.width == said[1]) return;
    throw Error(
        ErrorKind::corrupt,
        fmt::format("line {} says {}, the image in {} is {}x{}x{}", line + 1, shape_text(said),
                    database_.path(), found.height, found.width, found.channels),
        "make the list again, or read the records as they are with --convention plain",
        {.file = path_, .key = shown_key(key(line))});
  }

  lmdb::Database& database_;
  const std::string& path_;
  std::vector<MetaLine> lines_;
  bool whole_names_ = false;
};

}  // namespace

Layout lay_out_by_list(lmdb::Database& database, const std::string& path) {
  if (path.empty()) {
    throw Error(ErrorKind::usage, "a meta_info.txt lies in the directory of a database",
                "use --convention auto", {.file = database.path()});
  }
  Matching matching(database, path);
  Layout layout;
  layout.convention = ConventionName::meta_info;
  layout.parts.push_back({.name = {}, .prefix = {}, .records = matching.records()});
  matching.check_shapes();
  layout.why = fmt::format("{} lists {} records", path, matching.size());
  return layout;
}

}  // namespace forebay::convention
