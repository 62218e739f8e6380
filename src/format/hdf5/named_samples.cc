// What names of data sets suggest.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <set>

#include "forebay/error.hpp"
#include "format/dataset_files.hpp"
#include "format/hdf5/layout.hpp"

namespace forebay::hdf5 {
namespace {

/// Siblings without numbers are samples only where there are more of them than anybody has fields.
constexpr std::size_t kMostFields = 16;

bool is_digit(char c) { return c >= '0' && c <= '9'; }

/// Calls use(pattern) for each run of digits in `name`, and what stands for it.
template <typename Use>
void for_each_number(const std::string& name, Use&& use) {
  for (std::size_t begin = 0; begin < name.size();) {
    if (!is_digit(name[begin])) {
      ++begin;
      continue;
    }
    const auto end = static_cast<std::size_t>(
        std::find_if_not(name.begin() + static_cast<std::ptrdiff_t>(begin), name.end(), is_digit) -
        name.begin());
    use(name.substr(0, begin) + "*" + name.substr(end));
    begin = end;
  }
}

/// The same for each step of the path.
template <typename Use>
void for_each_step(const std::string& name, Use&& use) {
  for (std::size_t begin = 0; begin <= name.size();) {
    const std::size_t end = std::min(name.find('/', begin), name.size());
    use(name.substr(0, begin) + "*" + name.substr(end));
    begin = end + 1;
  }
}

/// For each name the pattern that it shares with most others; none where it shares none.
template <typename ForEach>
std::vector<std::string> families(std::span<const std::string> names, ForEach&& patterns) {
  std::map<std::string, std::size_t> all;
  for (const std::string& name : names) {
    // Nothing could tell such a '*' from that of a pattern.
    if (name.find('*') != std::string::npos) return {};
    patterns(name, [&](const std::string& pattern) { ++all[pattern]; });
  }
  std::vector<std::string> chosen;
  for (const std::string& name : names) {
    const std::pair<const std::string, std::size_t>* best = nullptr;
    patterns(name, [&](const std::string& pattern) {
      const auto at = all.find(pattern);
      if (best == nullptr || at->second > best->second) best = &*at;
    });
    chosen.push_back(best == nullptr ? std::string() : best->first);
  }
  return chosen;
}

/// Patterns of more than half of as many names as the one with most has; none where these patterns
/// have no more than half of all names.
std::vector<std::string> common(std::span<const std::string> families, std::size_t names,
                                std::size_t least) {
  std::map<std::string, std::size_t> counts;
  for (const std::string& family : families) {
    if (!family.empty()) ++counts[family];
  }
  std::size_t most = 0;
  for (const auto& [pattern, count] : counts) most = std::max(most, count);
  std::vector<std::string> patterns;
  std::size_t covered = 0;
  for (const auto& [pattern, count] : counts) {
    if (2 * count <= most) continue;
    patterns.push_back(pattern);
    covered += count;
  }
  return most >= least && 2 * covered > names ? patterns : std::vector<std::string>();
}

/// Each family once, and names that have none, or one for themselves.
std::vector<std::string> layout_of(std::span<const std::string> names,
                                   std::span<const std::string> families) {
  std::map<std::string, std::vector<std::string>> members;
  std::vector<std::string> layout;
  for (std::size_t i = 0; i < names.size(); ++i) {
    if (families[i].empty()) {
      layout.push_back(names[i]);
    } else {
      members[families[i]].push_back(names[i]);
    }
  }
  for (const auto& [family, all] : members) layout.push_back(all.size() > 1 ? family : all[0]);
  return layout;
}

/// What stands in `name` for the stars of `pattern`, in as many steps; empty where it is another
/// one.
std::string matched(const std::string& name, const std::string& pattern, const Stars& stars) {
  const std::string_view end = std::string_view(pattern).substr(stars.end);
  if (name.size() < pattern.size() || !name.starts_with(pattern.substr(0, stars.begin)) ||
      !name.ends_with(end)) {
    return {};
  }
  const std::string key = name.substr(stars.begin, name.size() - end.size() - stars.begin);
  const std::size_t steps = (stars.end - stars.begin) / 2;
  const auto slashes = static_cast<std::size_t>(std::ranges::count(key, '/'));
  return slashes == steps ? key : std::string();
}

/// The number that `text` begins with, without zeros in front, which becomes shorter by it.
std::string_view take_number(std::string_view& text) {
  const auto end =
      static_cast<std::size_t>(std::find_if_not(text.begin(), text.end(), is_digit) - text.begin());
  std::string_view number = text.substr(0, end);
  number.remove_prefix(std::min(number.find_first_not_of('0'), number.size()));
  text.remove_prefix(end);
  return number;
}

/// By bytes, but numbers in names by what they are: "s9" comes before "s10".
bool comes_before(const std::string& a, const std::string& b) {
  std::string_view x = a;
  std::string_view y = b;
  while (!x.empty() && !y.empty()) {
    if (is_digit(x[0]) && is_digit(y[0])) {
      const std::string_view number = take_number(x);
      const std::string_view other = take_number(y);
      if (number.size() != other.size()) return number.size() < other.size();
      if (number != other) return number < other;
    } else {
      if (x[0] != y[0]) return x[0] < y[0];
      x.remove_prefix(1);
      y.remove_prefix(1);
    }
  }
  return x.empty() != y.empty() ? x.empty() : a < b;
}

}  // namespace

std::string NamedSamples::at(std::size_t pattern, std::size_t sample) const {
  const std::string& text = patterns[pattern];
  const Stars stars = *stars_of(text);
  return text.substr(0, stars.begin) + keys[sample] + text.substr(stars.end);
}

bool NamedSamples::in_groups() const {
  return std::ranges::all_of(patterns, [](const std::string& pattern) {
    return pattern.find('/', stars_of(pattern)->end) != std::string::npos;
  });
}

NamedSamples match_samples(std::span<const std::string> names, std::vector<std::string> patterns) {
  NamedSamples found{.patterns = std::move(patterns)};
  std::vector<Stars> stars;
  for (const std::string& pattern : found.patterns) stars.push_back(*stars_of(pattern));
  std::vector<std::set<std::string>> keys(found.patterns.size());
  std::set<std::string> all;
  for (const std::string& name : names) {
    bool belongs = false;
    for (std::size_t p = 0; p < keys.size(); ++p) {
      const std::string key = matched(name, found.patterns[p], stars[p]);
      if (key.empty()) continue;
      belongs = true;
      keys[p].insert(key);
      all.insert(key);
    }
    if (!belongs) found.others.push_back(name);
  }
  for (std::size_t p = 0; p < keys.size(); ++p) {
    if (keys[p].empty()) {
      throw Error(ErrorKind::not_found,
                  fmt::format("no data set is called as '{}'", found.patterns[p]),
                  "correct the name after the '#': '*' stands for what tells samples apart");
    }
    const auto lacks =
        std::ranges::find_if(all, [&](const std::string& key) { return !keys[p].contains(key); });
    if (lacks == all.end() || !found.lacking.empty()) continue;
    found.lacking = fmt::format("sample '{}' has no '{}', which {} of {} have", shown_name(*lacks),
                                shown_name(found.patterns[p]), keys[p].size(), all.size());
  }
  found.keys.assign(all.begin(), all.end());
  std::ranges::sort(found.keys, comes_before);
  return found;
}

std::optional<NamedSamples> find_samples(std::span<const std::string> names) {
  const auto numbers = [](const std::string& name, auto&& use) { for_each_number(name, use); };
  const auto steps = [](const std::string& name, auto&& use) { for_each_step(name, use); };
  auto chosen = families(names, numbers);
  auto patterns = common(chosen, names.size(), 2);
  if (patterns.empty()) {
    chosen = families(names, steps);
    patterns = common(chosen, names.size(), kMostFields + 1);
  }
  if (patterns.empty()) return {};
  NamedSamples found = match_samples(names, std::move(patterns));
  found.layout = layout_of(names, chosen);
  return found;
}

}  // namespace forebay::hdf5
