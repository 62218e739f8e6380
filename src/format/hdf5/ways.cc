#include "format/hdf5/ways.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "forebay/error.hpp"
#include "format/hdf5/dataset.hpp"

namespace forebay::hdf5 {
namespace {

constexpr std::size_t kMostListed = 20;  // in a message

/// `member` with a '*' for the first step, where that has one.
std::string with_whole_step(const std::string& member) {
  const std::size_t end = std::min(member.find('/'), member.size());
  return member.find('*') < end ? "*" + member.substr(end) : member;
}

}  // namespace

std::string Ways::if_read(const std::string& choices) const {
  return of_.reads(choices) ? choices : std::string();
}

std::string Ways::named(std::span<const std::string> names) const {
  return if_read(list_of(names));
}

std::string Ways::rows_of_all() const {
  const std::string group = of_.group.substr(0, of_.group.size() - 1);
  return if_read(of_.group.empty() ? "/[:]" : list_of({&group, 1}) + "[:]");
}

std::string Ways::each_a_sample(const NamedSamples& found) const {
  for (const std::vector<std::string>& more : {std::vector<std::string>(), beside(found)}) {
    if (!are_meant(found, more)) continue;
    std::vector<std::string> names = found.patterns;
    names.insert(names.end(), more.begin(), more.end());
    if (std::string list = named(names); !list.empty()) return list;
  }
  return {};
}

std::string Ways::rows_of_one(const NamedSamples& found) const {
  std::vector<std::string> names;
  for (std::size_t p = 0; p < found.patterns.size(); ++p) names.push_back(found.at(p, 0));
  return named(names);
}

std::string Ways::rows_of_each(const NamedSamples& found) const {
  std::vector<std::string> rows;
  for (const std::string& pattern : found.patterns) rows.push_back(pattern + "[:]");
  return named(rows);
}

std::string Ways::one_of(const Twin& twin) const {
  return twin.path.empty() ? list_of_members(twin, of_.group) : list_of({&twin.path, 1});
}

std::string Ways::samples_of_all(const Alike& alike) const {
  const Twin& first = alike.twins[0];
  if (alike.splits) return {};
  const std::string parent = first.path.substr(0, first.path.size() - first.name.size());
  for (const bool whole_step : {false, true}) {
    std::vector<std::string> patterns;
    for (const auto& [member, path] : first.members) {
      const std::string pattern = parent + "*/" + (whole_step ? with_whole_step(member) : member);
      const auto stars = stars_of(pattern);
      if (stars && stars->end > parent.size() + 1) patterns.push_back(pattern);
    }
    if (patterns.size() < first.members.size()) continue;
    const NamedSamples all = match_samples(of_.names, patterns);
    if (all.others == match_samples(of_.names, alike.stored()).others) return named(patterns);
  }
  return {};
}

std::string Ways::fields_of_all(const Alike& alike, bool rows) const {
  if (rows) return rows_of_all();
  const std::vector<std::string> stored = alike.stored();
  const bool patterns =
      std::ranges::all_of(stored, [](const auto& name) { return stars_of(name).has_value(); });
  if (!patterns || stored.size() > kMostListed) return {};
  return if_read(list_of_all(alike, of_.group));
}

std::vector<std::string> Ways::beside(const NamedSamples& found) const {
  std::vector<std::string> names;
  for (const std::string& name : found.others) {
    const auto here = shape_of(of_.open(name).get());
    if (!here.empty() && here[0] == found.keys.size()) names.push_back(name);
  }
  return names;
}

bool Ways::are_meant(const NamedSamples& found, std::span<const std::string> beside) const {
  const auto is_beside = [&](const std::string& name) {
    return std::ranges::find(beside, name) != beside.end();
  };
  std::vector<std::string> names(of_.names.begin(), of_.names.end());
  std::vector<std::string> others = found.others;
  std::erase_if(names, is_beside);
  std::erase_if(others, is_beside);
  return match_samples(names, found.patterns).others == others;
}

void Ways::refuse(const std::string& what, std::initializer_list<Way> ways) const {
  std::vector<std::string> lines;
  for (const Way& way : ways) {
    if (!way.choices.empty()) {
      lines.push_back(fmt::format("'{}' for {}", shown(way.choices), way.what));
    }
  }
  throw Error(ErrorKind::usage, what,
              lines.empty() ? "name data sets whose rows are samples: FILE#NAME,NAME"
                            : fmt::format("say which: {}", fmt::join(lines, ", ")),
              {.file = of_.path});
}

}  // namespace forebay::hdf5
