// A database as the meta_info.txt beside it says: its order, and checks of its records.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <numeric>

#include "forebay/error.hpp"
#include "format/codec/image.hpp"
#include "format/convention/key_words.hpp"
#include "format/convention/layout.hpp"
#include "format/dataset_files.hpp"

namespace forebay::convention {
namespace {

constexpr std::size_t kMostDimensions = 4;
// LMDB's keys have 511 bytes; extensions come on top.
constexpr std::size_t kMostNameBytes = 1024;

class MetaInfo {
 public:
  explicit MetaInfo(const std::string& file) : file_(file) {}

  MetaLine parse(std::string_view line, std::size_t number) const {
    MetaLine result;
    const std::size_t open = line.rfind(" (");
    if (open != std::string_view::npos) {
      result.shape = shape(line.substr(open + 2), number);
      line = line.substr(0, open);
    }
    const bool printable = std::ranges::all_of(
        line, [](char c) { return static_cast<unsigned char>(c) >= 0x20 && c != 0x7f; });
    if (line.empty() || line.size() > kMostNameBytes || !printable) {
      refuse(number, "it does not begin with the name of a file");
    }
    result.name = line;
    if (result.stem().empty()) refuse(number, "the name has nothing before its extension");
    return result;
  }

  [[noreturn]] void refuse(std::size_t number, const std::string& what) const {
    throw Error(ErrorKind::corrupt, fmt::format("line {}: {}", number, what),
                "lines are 'NAME.png (480,480,3) 1'; correct it, or read the records as they are "
                "with --convention plain",
                {.file = file_});
  }

 private:
  /// "480,480,3) 1": numbers, and what follows them is a number too.
  std::vector<std::uint64_t> shape(std::string_view text, std::size_t number) const {
    const std::size_t close = text.find(')');
    if (close == std::string_view::npos) refuse(number, "a shape has no end");
    std::vector<std::uint64_t> shape;
    std::string_view list = text.substr(0, close);
    while (!list.empty()) {
      const std::size_t end = std::min(list.find(','), list.size());
      std::string_view item = list.substr(0, end);
      while (item.starts_with(' ')) item.remove_prefix(1);
      shape.push_back(count(item, number));
      list.remove_prefix(std::min(end + 1, list.size()));
    }
    if (shape.empty() || shape.size() > kMostDimensions) {
      refuse(number, fmt::format("a shape of {} numbers", shape.size()));
    }
    std::string_view level = text.substr(close + 1);
    while (level.starts_with(' ')) level.remove_prefix(1);
    if (!level.empty()) count(level, number);
    return shape;
  }

  std::uint64_t count(std::string_view text, std::size_t number) const {
    std::uint64_t value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error != std::errc() || end != text.data() + text.size()) {
      refuse(number, fmt::format("'{}' is no number", shown_name(text)));
    }
    return value;
  }

  const std::string& file_;
};

void require_different(const std::vector<MetaLine>& lines, const MetaInfo& info) {
  std::vector<std::size_t> order(lines.size());
  for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
  std::ranges::sort(order, [&](std::size_t a, std::size_t b) {
    return std::pair(lines[a].stem(), a) < std::pair(lines[b].stem(), b);
  });
  for (std::size_t i = 1; i < order.size(); ++i) {
    if (lines[order[i]].stem() != lines[order[i - 1]].stem()) continue;
    info.refuse(order[i] + 1, fmt::format("{} has the key of line {}",
                                          shown_name(lines[order[i]].name), order[i - 1] + 1));
  }
}

}  // namespace

std::string_view MetaLine::stem() const {
  const std::string_view text = name;
  const std::size_t slash = text.rfind('/');
  const std::size_t dot = text.rfind('.');
  const bool has_extension =
      dot != std::string_view::npos && (slash == std::string_view::npos || dot > slash);
  return has_extension ? text.substr(0, dot) : text;
}

std::vector<MetaLine> parse_meta_info(std::string_view text, const std::string& file) {
  const MetaInfo info(file);
  std::vector<MetaLine> lines;
  std::size_t number = 0;
  bool ended = false;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    ++number;
    while (line.ends_with('\r') || line.ends_with(' ')) line.remove_suffix(1);
    if (line.empty()) {
      ended = true;
      continue;
    }
    if (ended) info.refuse(number, "it comes behind an empty line");
    lines.push_back(info.parse(line, number));
  }
  require_different(lines, info);
  return lines;
}

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
  const lmdb::Cursor cursor = tree.seek(bytes_of(key));
  return cursor.valid() && chars_of(tree.node(cursor).key) == key;
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

  /// Of `metadata`, those that the list does not name are no samples, and left in it.
  RecordMap records(std::vector<MetadataRecord>& metadata) {
    std::vector<std::size_t> by_key(lines_.size());
    std::iota(by_key.begin(), by_key.end(), std::size_t{0});
    std::ranges::sort(by_key, {}, [this](std::size_t line) { return key(line); });
    std::vector<std::uint64_t> record_of(lines_.size());
    std::size_t next = 0;
    std::vector<MetadataRecord> left_out;
    for_each_key(database_, [&](std::uint64_t record, std::string_view found) {
      const bool named = next < by_key.size() && key(by_key[next]) == found;
      const auto known = std::ranges::find(metadata, found, &MetadataRecord::key);
      if (!named && known != metadata.end()) {
        left_out.push_back(*known);
        left_out.back().record = record;
        return true;
      }
      if (next < by_key.size() && key(by_key[next]) < found) missing(by_key[next]);
      if (next == by_key.size() || key(by_key[next]) != found) unlisted(found);
      record_of[by_key[next++]] = record;
      return true;
    });
    if (next < by_key.size()) missing(by_key[next]);
    metadata = std::move(left_out);
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
    const lmdb::Cursor cursor = tree.seek(bytes_of(key(line)));
    if (said.size() < 2 || !cursor.valid()) return;
    const auto value = tree.entry(cursor).value;
    if (image_format(value) == ImageFormat::none) return;
    const ImageShape found = image_shape(value);
    // Channels differ by how a program reads gray and transparent images, sides by whether it turns
    // them upright.
    const ImageShape stored = image_shape(value, {.upright = false});
    if (found.height == said[0] && found.width == said[1]) return;
    if (stored.height == said[0] && stored.width == said[1]) return;
    throw Error(
        ErrorKind::corrupt,
        fmt::format("line {} says {}, the image in {} is {}x{}x{}", line + 1, fmt::join(said, "x"),
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

Layout lay_out_by_list(lmdb::Database& database, const std::string& path,
                       const std::vector<MetadataRecord>& metadata) {
  if (path.empty()) {
    throw Error(ErrorKind::usage, "a meta_info.txt lies in the directory of a database",
                "use --convention auto", {.file = database.path()});
  }
  Matching matching(database, path);
  Layout layout;
  layout.convention = ConventionName::meta_info;
  layout.metadata = metadata;
  layout.parts.push_back({.name = {}, .prefix = {}, .records = matching.records(layout.metadata)});
  matching.check_shapes();
  layout.why = fmt::format("{} lists {} records", path, matching.size());
  if (!layout.metadata.empty()) layout.why += ", all but " + names_of(layout.metadata);
  return layout;
}

}  // namespace forebay::convention
