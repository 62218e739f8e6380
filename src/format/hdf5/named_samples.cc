// What names of data sets suggest.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <set>

#include "forebay/error.hpp"
#include "format/dataset_files.hpp"
#include "format/hdf5/layout.hpp"
#include "format/hdf5/name_numbers.hpp"

namespace forebay::hdf5 {
namespace {

/// Siblings without numbers are samples only where there are more of them than anybody has fields.
constexpr std::size_t kMostFields = 16;

/// Stands for a number in a form; no name of a data set that anybody can type has it.
constexpr char kNumber = '\1';

/// Names that are the same but for their numbers.
class Forms {
 public:
  explicit Forms(std::span<const std::string> names);

  /// Calls use(pattern) with a '*' for each step of `name` in which names of its form differ: from
  /// the first to the last number that does.
  template <typename Use>
  void for_each_step(const std::string& name, Use&& use) const;
  /// Calls use(pattern) for each single number of steps in which several differ, of which none
  /// alone tells names apart: "case00_slice000", but not "img_0_17" where each has its own first.
  template <typename Use>
  void for_each_mixed_number(const std::string& name, Use&& use) const;

 private:
  struct Step {
    std::set<std::string> texts;  // each with all of its numbers
    std::vector<std::set<std::string>> numbers;
  };
  struct Spelled {
    std::string form;
    std::vector<std::vector<NumberPlace>> steps;  // those that have numbers
  };
  static Spelled spell(const std::string& name);

  std::map<std::string, std::vector<Step>> all_;
};

Forms::Spelled Forms::spell(const std::string& name) {
  Spelled spelled;
  std::size_t end = 0;
  for (const NumberPlace& place : numbers_in(name)) {
    const std::string between = name.substr(end, place.begin - end);
    if (spelled.steps.empty() || between.find('/') != std::string::npos) {
      spelled.steps.emplace_back();
    }
    spelled.steps.back().push_back(place);
    spelled.form += between + kNumber;
    end = place.end;
  }
  spelled.form += name.substr(end);
  return spelled;
}

std::string text_at(const std::string& name, std::size_t begin, std::size_t end) {
  return name.substr(begin, end - begin);
}

std::string starred(const std::string& name, std::size_t begin, std::size_t end) {
  return name.substr(0, begin) + "*" + name.substr(end);
}

Forms::Forms(std::span<const std::string> names) {
  for (const std::string& name : names) {
    const Spelled spelled = spell(name);
    std::vector<Step>& steps = all_[spelled.form];
    steps.resize(spelled.steps.size());
    for (std::size_t s = 0; s < steps.size(); ++s) {
      const std::vector<NumberPlace>& places = spelled.steps[s];
      steps[s].texts.insert(text_at(name, places.front().begin, places.back().end));
      steps[s].numbers.resize(places.size());
      for (std::size_t i = 0; i < places.size(); ++i) {
        steps[s].numbers[i].insert(text_at(name, places[i].begin, places[i].end));
      }
    }
  }
}

bool differs(const std::set<std::string>& numbers) { return numbers.size() > 1; }

template <typename Use>
void Forms::for_each_step(const std::string& name, Use&& use) const {
  const Spelled spelled = spell(name);
  const std::vector<Step>& steps = all_.at(spelled.form);
  for (std::size_t s = 0; s < steps.size(); ++s) {
    const auto& numbers = steps[s].numbers;
    const auto first = std::ranges::find_if(numbers, differs);
    if (first == numbers.end()) continue;
    const auto last = std::find_if(numbers.rbegin(), numbers.rend(), differs);
    const auto begin = static_cast<std::size_t>(first - numbers.begin());
    const auto end = static_cast<std::size_t>(numbers.rend() - last) - 1;
    use(starred(name, spelled.steps[s][begin].begin, spelled.steps[s][end].end));
  }
}

template <typename Use>
void Forms::for_each_mixed_number(const std::string& name, Use&& use) const {
  const Spelled spelled = spell(name);
  const std::vector<Step>& steps = all_.at(spelled.form);
  for (std::size_t s = 0; s < steps.size(); ++s) {
    const Step& step = steps[s];
    const bool one_tells = std::ranges::any_of(
        step.numbers, [&](const auto& numbers) { return numbers.size() == step.texts.size(); });
    if (one_tells) continue;
    for (std::size_t i = 0; i < step.numbers.size(); ++i) {
      const NumberPlace& place = spelled.steps[s][i];
      if (differs(step.numbers[i])) use(starred(name, place.begin, place.end));
    }
  }
}

/// Calls use(pattern) for each step of the path.
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

/// In the order of names.
std::vector<std::string> in_order(const std::set<std::string>& keys, const std::string& pattern) {
  // What stands before a key says what numbers are in it.
  const std::string head = pattern.substr(0, stars_of(pattern)->begin);
  std::vector<std::string> names;
  for (const std::string& key : keys) names.push_back(head + key);
  std::ranges::sort(names, NameOrder(names));
  for (std::string& name : names) name.erase(0, head.size());
  return names;
}

/// The patterns that `name` belongs to: those that say the most of it, "img_*_mask" rather than
/// "img_*". Calls use(number, key).
template <typename Use>
void for_each_match(const std::string& name, const std::vector<std::string>& patterns,
                    std::span<const Stars> stars, Use&& use) {
  std::vector<std::string> keys;
  std::size_t longest = 0;
  for (std::size_t p = 0; p < patterns.size(); ++p) {
    keys.push_back(matched(name, patterns[p], stars[p]));
    if (!keys[p].empty()) longest = std::max(longest, patterns[p].size());
  }
  for (std::size_t p = 0; p < patterns.size(); ++p) {
    if (!keys[p].empty() && patterns[p].size() == longest) use(p, keys[p]);
  }
}

/// NamedSamples::by_single_numbers of those of `names` whose pattern, in `chosen`, is one of
/// `patterns`.
std::vector<std::string> by_single_numbers(std::span<const std::string> names,
                                           std::span<const std::string> chosen,
                                           const std::vector<std::string>& patterns,
                                           const Forms& forms) {
  std::vector<std::string> members;
  for (std::size_t i = 0; i < names.size(); ++i) {
    if (std::ranges::binary_search(patterns, chosen[i])) members.push_back(names[i]);
  }
  const auto single = families(members, [&](const std::string& name, auto&& use) {
    forms.for_each_mixed_number(name, use);
  });
  std::set<std::string> different(single.begin(), single.end());
  different.erase(std::string());
  return {different.begin(), different.end()};
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
    for_each_match(name, found.patterns, stars, [&](std::size_t p, const std::string& key) {
      belongs = true;
      keys[p].insert(key);
      all.insert(key);
    });
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
    if (lacks == all.end()) {
      found.whole.push_back(found.patterns[p]);
    } else if (found.lacking.empty()) {
      found.lacking =
          fmt::format("sample '{}' has no '{}', which {} of {} have", shown_name(*lacks),
                      shown_name(found.patterns[p]), keys[p].size(), all.size());
    }
  }
  found.keys = in_order(all, found.patterns[0]);
  return found;
}

std::optional<NamedSamples> find_samples(std::span<const std::string> names) {
  const Forms forms(names);
  const auto numbers = [&](const std::string& name, auto&& use) { forms.for_each_step(name, use); };
  const auto steps = [](const std::string& name, auto&& use) { for_each_step(name, use); };
  auto chosen = families(names, numbers);
  auto patterns = common(chosen, names.size(), 2);
  const bool by_numbers = !patterns.empty();
  if (!by_numbers) {
    chosen = families(names, steps);
    patterns = common(chosen, names.size(), kMostFields + 1);
  }
  if (patterns.empty()) return {};
  NamedSamples found = match_samples(names, patterns);
  found.layout = layout_of(names, chosen);
  if (by_numbers) found.by_single_numbers = by_single_numbers(names, chosen, patterns, forms);
  return found;
}

}  // namespace forebay::hdf5
