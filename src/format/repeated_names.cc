#include "format/repeated_names.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <set>

#include "format/dataset_files.hpp"

namespace forebay {
namespace {

constexpr std::array<std::string_view, 9> kSplits{"train", "training",   "test", "testing", "val",
                                                  "valid", "validation", "dev",  "eval"};
constexpr char kHere = '\1';  // where a name was taken out of a path

bool is_letter(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
}

std::string lower(std::string text) {
  for (char& c : text) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  return text;
}

/// A word of a path that is called as a split is.
struct SplitWord {
  std::string word;
  std::string form;   // the path without it
  std::string group;  // the group that is called so; empty: more than that is
};

template <typename Use>
void for_each_split_word(const std::string& path, std::size_t from, Use&& use) {
  for (std::size_t begin = from; begin < path.size(); ++begin) {
    if (!is_letter(path[begin])) continue;
    std::size_t end = begin;
    while (end < path.size() && is_letter(path[end])) ++end;
    const std::string word = lower(path.substr(begin, end - begin));
    if (is_split_name(word)) {
      const bool step = (begin == 0 || path[begin - 1] == '/') && end < path.size() &&
                        path[end] == '/' && path.find('*') > end;
      use(SplitWord{.word = word,
                    .form = path.substr(0, begin) + kHere + path.substr(end),
                    .group = step ? path.substr(0, end) : std::string()});
    }
    begin = end;
  }
}

/// Splits, whatever of the paths tells them.
std::optional<Alike> find_splits(std::span<const std::string> layout, const std::string& group) {
  std::map<std::string, Twin> twins;
  std::map<std::string, std::size_t> forms;
  for (const std::string& path : layout) {
    for_each_split_word(path, group.size(), [&](const SplitWord& found) {
      Twin& twin = twins[found.word];
      if (twin.members.empty()) twin = {.name = found.word, .path = found.group, .members = {}};
      if (twin.path != found.group) twin.path.clear();
      if (twin.members.emplace(found.form, path).second) ++forms[found.form];
    });
  }
  Alike alike{.splits = true, .twins = {}};
  for (auto& [word, twin] : twins) {
    const bool shared = std::ranges::any_of(
        twin.members, [&](const auto& member) { return forms.at(member.first) > 1; });
    if (shared) alike.twins.push_back(std::move(twin));
  }
  if (alike.twins.empty()) return {};
  std::ranges::sort(alike.twins, {},
                    [](const Twin& twin) { return std::ranges::find(kSplits, twin.name); });
  return alike;
}

/// Samples of one kind are what they are, whatever they are called: "cat/cat_*", "dog/dog_*".
void forget_names_of_samples(Twin& twin) {
  if (twin.members.size() != 1) return;
  const auto& [member, stored] = *twin.members.begin();
  const std::size_t end = std::min(member.find('/'), member.size());
  if (member.find('*') < end) twin.members = {{"*" + member.substr(end), stored}};
}

/// Groups inside of others, by the path of these; no step with a '*' is one.
using Groups = std::map<std::string, std::map<std::string, Twin>>;

Groups groups_of(std::span<const std::string> layout, const std::string& below) {
  Groups groups;
  for (const std::string& path : layout) {
    const std::size_t star = std::min(path.find('*'), path.size());
    std::size_t begin = below.size();
    for (std::size_t end = path.find('/', begin); end < star; end = path.find('/', begin)) {
      Twin& twin = groups[path.substr(0, begin)][path.substr(begin, end - begin)];
      twin.name = path.substr(begin, end - begin);
      twin.path = path.substr(0, end);
      twin.members.emplace(path.substr(end + 1), path);
      begin = end + 1;
    }
  }
  return groups;
}

/// A field's name made of what a path has beside stars; perhaps empty.
std::string name_without_stars(std::string path) {
  std::erase_if(path, [](char c) { return c == '*' || static_cast<unsigned char>(c) < 0x20; });
  std::string name = field_name(path);
  constexpr const char* kApart = "._-";
  name.erase(0, std::min(name.find_first_not_of(kApart), name.size()));
  name.erase(name.find_last_not_of(kApart) + 1);
  for (std::size_t at; (at = name.find("..")) != std::string::npos;) name.erase(at, 1);
  return name;
}

/// As behind a '#', called so where the names are different.
std::string renamed_list(std::span<const std::string> stored, std::span<const std::string> names) {
  const std::set<std::string> all(names.begin(), names.end());
  if (all.size() < names.size() || all.contains({})) return list_of(stored);
  std::vector<std::string> renamed;
  for (std::size_t i = 0; i < names.size(); ++i) {
    renamed.push_back(names[i] + "=" + list_of(stored.subspan(i, 1)));
  }
  return fmt::format("{}", fmt::join(renamed, ","));
}

}  // namespace

bool is_split_name(const std::string& word) {
  return std::ranges::find(kSplits, lower(word)) != kSplits.end();
}

std::optional<Stars> stars_of(const std::string& text) {
  const std::size_t begin = text.find('*');
  if (begin == std::string::npos) return {};
  std::size_t end = begin + 1;
  while (text.compare(end, 2, "/*") == 0) end += 2;
  if (text.find('*', end) != std::string::npos) return {};
  return Stars{.begin = begin, .end = end};
}

std::vector<std::string> Alike::names() const {
  std::vector<std::string> all;
  for (const Twin& twin : twins) all.push_back(twin.path.empty() ? twin.name : twin.path);
  return all;
}

std::vector<std::string> Alike::stored() const {
  std::vector<std::string> all;
  for (const Twin& twin : twins) {
    for (const auto& [name, stored] : twin.members) all.push_back(stored);
  }
  return all;
}

std::vector<Alike> find_alike(std::span<const std::string> layout, const std::string& group) {
  std::vector<Alike> all;
  if (auto splits = find_splits(layout, group)) all.push_back(std::move(*splits));
  for (auto& [parent, groups] : groups_of(layout, group)) {
    std::map<std::vector<std::string>, Alike> by_members;
    for (auto& [name, twin] : groups) {
      forget_names_of_samples(twin);
      std::vector<std::string> members;
      for (const auto& [member, stored] : twin.members) members.push_back(member);
      by_members[members].twins.push_back(std::move(twin));
    }
    for (auto& [members, alike] : by_members) {
      if (alike.twins.size() > 1) all.push_back(std::move(alike));
    }
  }
  return all;
}

std::string list_of(std::span<const std::string> names) {
  std::vector<std::string> shown;
  for (const std::string& name : names) {
    std::string& text = shown.emplace_back();
    for (const char c : shown_name(name)) {
      if (c == ',' || c == '=' || c == '\\') text += '\\';
      text += c;
    }
  }
  return fmt::format("{}", fmt::join(shown, ","));
}

std::string list_of_members(const Twin& twin, const std::string& group) {
  std::vector<std::string> names;
  std::vector<std::string> stored;
  for (const auto& [form, path] : twin.members) {
    // Samples in groups are called by what is in these.
    const auto stars = stars_of(form);
    const bool inside = stars && form.find('/', stars->end) != std::string::npos;
    names.push_back(name_without_stars(form.substr(inside ? stars->end : group.size())));
    stored.push_back(path);
  }
  return renamed_list(stored, names);
}

std::string list_of_all(const Alike& alike, const std::string& group) {
  const std::vector<std::string> stored = alike.stored();
  std::vector<std::string> names;
  for (const std::string& path : stored) {
    names.push_back(name_without_stars(path.substr(group.size())));
  }
  return renamed_list(stored, names);
}

}  // namespace forebay
