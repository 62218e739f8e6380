#include "format/convention/meta_info.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <optional>

#include "forebay/error.hpp"
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

std::string shape_text(const std::vector<std::uint64_t>& shape) {
  return fmt::format("{}", fmt::join(shape, "x"));
}

}  // namespace forebay::convention
