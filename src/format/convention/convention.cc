#include "format/convention/convention.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "forebay/error.hpp"
#include "format/convention/partners.hpp"

namespace forebay::convention {
namespace {

void require_same_parts(const Layout& first, const Layout& other, const std::string& path) {
  const auto names = [](const Layout& layout) {
    std::vector<std::string> all;
    for (const LayoutPart& part : layout.parts) all.push_back(part.prefix + "|" + part.name);
    return all;
  };
  if (names(first) == names(other)) return;
  throw Error(ErrorKind::corrupt, "its samples have other parts than those of the first database",
              "name databases of one kind together", {.file = path});
}

void refuse_parts_of_parts(const std::string& path) {
  throw Error(ErrorKind::unsupported,
              "its samples have several parts, and it is to be one part of others",
              "use it alone, or read it with --convention plain", {.file = path});
}

}  // namespace

Convention Convention::arrange(const std::vector<PartDatabases>& list,
                               std::span<lmdb::Database* const> databases,
                               const ConventionOptions& options) {
  Convention result;
  std::vector<Layout> layouts;
  std::uint64_t records = 0;
  for (lmdb::Database* database : databases) {
    Layout& layout = layouts.emplace_back(lay_out(*database, options));
    result.databases_.push_back({.path = database->path(),
                                 .first_record = records,
                                 .records = database->entries(),
                                 .convention = layout.convention,
                                 .why = layout.why,
                                 .metadata = layout.metadata});
    records += database->entries();
  }
  std::size_t at = 0;
  for (const PartDatabases& part : list) {
    const std::size_t begin = at;
    const std::vector<LayoutPart>& model = layouts[begin].parts;
    const std::size_t before = result.parts_.size();
    for (const LayoutPart& one : model) {
      result.parts_.push_back({.name = list.size() > 1 ? part.name : one.name,
                               .prefix = one.prefix,
                               .records = {},
                               .first_database = begin});
    }
    if (list.size() > 1 && model.size() > 1) refuse_parts_of_parts(databases[begin]->path());
    for (; at < begin + part.paths.size(); ++at) {
      require_same_parts(layouts[begin], layouts[at], databases[at]->path());
      if (begin == 0) result.bounds_.push_back(result.parts_[0].records.samples());
      for (std::size_t p = 0; p < model.size(); ++p) {
        result.parts_[before + p].records.append(layouts[at].parts[p].records,
                                                 result.databases_[at].first_record);
      }
    }
  }
  if (list.size() > 1) align_parts(list, databases, layouts, result.databases_, result.parts_);
  result.bounds_.push_back(result.samples());
  std::erase_if(result.bounds_,
                [&, last = std::uint64_t{0}, first = true](std::uint64_t b) mutable {
                  const bool repeats = !first && b == last;  // a database without samples
                  first = false;
                  last = b;
                  return repeats;
                });
  if (result.bounds_.size() < 3) result.bounds_.clear();
  for (Part& part : result.parts_) part.records.finish();
  return result;
}

std::vector<std::string> Convention::part_names() const {
  std::vector<std::string> names;
  if (!has_parts()) return names;
  for (const Part& part : parts_) names.push_back(part.name);
  return names;
}

std::string Convention::text() const {
  std::string text(to_string(databases_[0].convention));
  if (has_parts()) text += fmt::format(" ({})", fmt::join(part_names(), ", "));
  if (databases_.size() > 1) text += fmt::format(", {} databases", databases_.size());
  return text;
}

std::string Convention::fingerprint() const {
  std::string text;
  for (const Part& part : parts_) {
    text += fmt::format(",part={}:{:016x}", part.name, part.records.digest());
  }
  return text;
}

std::uint64_t Convention::memory_bytes() const {
  std::uint64_t bytes = 0;
  for (const Part& part : parts_) bytes += part.records.memory_bytes();
  return bytes;
}

}  // namespace forebay::convention
