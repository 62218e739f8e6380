#include "format/hdf5/layout.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <set>
#include <tuple>
#include <utility>

#include "format/dataset_files.hpp"
#include "format/hdf5/dataset.hpp"
#include "format/hdf5/ways.hpp"

namespace forebay::hdf5 {
namespace {

constexpr std::size_t kMostNames = 20;  // in a message

/// What has to be the same where data sets hold the same kind of thing: neither lengths nor sizes.
using Kind = std::tuple<std::size_t, H5T_class_t, std::size_t>;

/// What data sets that may be a sample each have in common.
struct Likeness {
  bool single = false;   // one of them is a single value
  bool same = true;      // all have as many rows
  bool tables = true;    // those of one sample have
  bool one_type = true;  // all of a pattern have, as columns need not
  bool one_shape = true;
  bool columns = true;  // all have one dimension
  std::uint64_t rows = 0;
};

enum class Meaning : std::uint8_t { samples, rows, either };

class Judge {
 public:
  explicit Judge(const LayoutCase& of) : of_(of), ways_(of) {}

  Layout judge();

 private:
  std::vector<std::uint64_t> shape(const std::string& name) const {
    return shape_of(of_.open(name).get());
  }
  bool is_table(std::span<const std::string> names) const;
  bool are_alike(const std::string& name, const std::string& other) const;
  std::set<Kind> kinds(const std::string& name_or_pattern) const;
  bool same_kinds(std::span<const std::string> names_or_patterns) const;
  bool same_kinds(const Alike& alike) const;
  Likeness likeness_of(const NamedSamples& found) const;
  Meaning meaning_of(const NamedSamples& found, const Likeness& likeness) const;
  NamedSamples without_words(NamedSamples found) const;

  [[noreturn]] void refuse_alike(const Alike& alike, bool rows) const;
  void require_no_grid(const NamedSamples& found) const;
  [[noreturn]] void refuse_mixed(const NamedSamples& found) const;
  [[noreturn]] void refuse_unclear(const NamedSamples& found, const Likeness& likeness) const;
  std::vector<std::string> notes_of_samples(const NamedSamples& found,
                                            const Likeness& likeness) const;
  std::string note_of_rows(const NamedSamples& found, const Likeness& likeness) const;
  void decide(const NamedSamples& found, bool mixed, Layout& layout) const;

  const LayoutCase& of_;
  const Ways ways_;
};

std::set<Kind> Judge::kinds(const std::string& name_or_pattern) const {
  std::vector<std::string> names{name_or_pattern};
  const bool exists = std::ranges::binary_search(of_.names, name_or_pattern);
  if (!exists) {
    const NamedSamples all = match_samples(of_.names, names);
    names.clear();
    for (std::size_t s = 0; s < all.keys.size(); ++s) names.push_back(all.at(0, s));
  }
  std::set<Kind> kinds;
  for (const std::string& name : names) {
    const Id id = of_.open(name);
    const Id type(H5Dget_type(id.get()), H5Tclose);
    kinds.emplace(shape_of(id.get()).size(), H5Tget_class(type.get()), H5Tget_size(type.get()));
  }
  return kinds;
}

/// Whether any of these, which go by one name, may be the same: images and depths, one beside the
/// other, never are.
bool Judge::same_kinds(std::span<const std::string> names_or_patterns) const {
  std::set<Kind> all;
  std::size_t count = 0;
  for (const std::string& one : names_or_patterns) {
    const auto more = kinds(one);
    all.insert(more.begin(), more.end());
    count += more.size();
  }
  return all.size() < count;
}

bool Judge::same_kinds(const Alike& alike) const {
  std::map<std::string, std::vector<std::string>> by_name;
  for (const Twin& twin : alike.twins) {
    for (const auto& [member, stored] : twin.members) by_name[member].push_back(stored);
  }
  return std::ranges::any_of(by_name, [&](const auto& one) { return same_kinds(one.second); });
}

/// Patterns that are twins where they are the same but for numbers.
Alike twins_of(std::span<const std::string> patterns) {
  Alike alike;
  for (const std::string& pattern : patterns) {
    std::string form = pattern;
    std::erase_if(form, [](char c) { return c == '*' || (c >= '0' && c <= '9'); });
    alike.twins.push_back({.name = pattern, .path = {}, .members = {{form, pattern}}});
  }
  return alike;
}

bool Judge::are_alike(const std::string& name, const std::string& other) const {
  const Id one = of_.open(name);
  const Id two = of_.open(other);
  const Id type(H5Dget_type(one.get()), H5Tclose);
  const Id other_type(H5Dget_type(two.get()), H5Tclose);
  return H5Tequal(type.get(), other_type.get()) > 0 && shape_of(one.get()) == shape_of(two.get());
}

/// Beside samples with numbers, what has none is a sample only where it is like them: "labels", of
/// another shape, is none of "*".
NamedSamples Judge::without_words(NamedSamples found) const {
  const auto is_word = [](const std::string& key) {
    return key.find_first_of("0123456789") == std::string::npos;
  };
  const auto numbered = std::ranges::find_if_not(found.keys, is_word);
  if (numbered == found.keys.end()) return found;
  const auto model = static_cast<std::size_t>(numbered - found.keys.begin());
  const auto exists = [&](const std::string& name) {
    return std::ranges::binary_search(of_.names, name);
  };
  std::set<std::string> others(found.others.begin(), found.others.end());
  for (std::size_t s = 0; s < found.keys.size(); ++s) {
    if (!is_word(found.keys[s])) continue;
    std::vector<std::string> names;
    bool alike = true;
    for (std::size_t p = 0; p < found.patterns.size(); ++p) {
      const std::string name = found.at(p, s);
      const std::string other = found.at(p, model);
      alike = alike && exists(name) && exists(other) && are_alike(name, other);
      if (exists(name)) names.push_back(name);
    }
    if (!alike) others.insert(names.begin(), names.end());
  }
  if (others.size() == found.others.size()) return found;
  std::vector<std::string> members;
  for (const std::string& name : of_.names) {
    if (!others.contains(name)) members.push_back(name);
  }
  NamedSamples rest = match_samples(members, found.patterns);
  rest.others.assign(others.begin(), others.end());
  rest.layout = std::move(found.layout);
  rest.by_single_numbers = std::move(found.by_single_numbers);
  return rest;
}

void Judge::refuse_alike(const Alike& alike, bool rows) const {
  const std::vector<std::string> names = alike.names();
  ways_.refuse(fmt::format("its data sets {} have the same names in {}: these may be {}",
                           some_of(alike.stored()), some_of(names),
                           alike.splits ? "splits" : "classes, splits, or fields of one sample"),
               {{ways_.one_of(alike.twins[0]), names[0] + " alone"},
                {ways_.samples_of_all(alike), "the samples of all groups"},
                {ways_.fields_of_all(alike, rows), "all as fields of one sample"}});
}

/// `name` with '*' for each step that has a digit.
std::string without_numbers(const std::string& name) {
  std::string text;
  for (std::size_t begin = 0; begin <= name.size();) {
    const std::size_t end = std::min(name.find('/', begin), name.size());
    const std::string step = name.substr(begin, end - begin);
    text += (begin > 0 ? "/" : "") +
            (step.find_first_of("0123456789") == std::string::npos ? step : "*");
    begin = end + 1;
  }
  return text;
}

/// Names in steps that have numbers, one in the other, each with '*' for these; empty where some
/// are elsewhere.
std::vector<std::string> grid_of(std::span<const std::string> names) {
  std::set<std::string> forms;
  std::set<std::pair<std::size_t, std::size_t>> places;
  for (const std::string& name : names) {
    const auto [form, is_new] = forms.insert(without_numbers(name));
    if (!is_new) continue;
    const auto stars = stars_of(*form);
    if (!stars || stars->end == stars->begin + 1) return {};
    places.emplace(stars->begin, stars->end);
  }
  return places.size() == 1 ? std::vector<std::string>(forms.begin(), forms.end())
                            : std::vector<std::string>();
}

/// Groups with numbers, of data sets or groups with numbers, may be samples, or classes of such:
/// 3/017.
void Judge::require_no_grid(const NamedSamples& found) const {
  if (found.patterns.size() < 2 || !found.in_groups()) return;
  const std::vector<std::string> each = grid_of(of_.names);
  if (each.empty()) return;
  Alike alike;
  for (const std::string& pattern : found.patterns) {
    const std::string name = found.at(alike.twins.size(), 0);
    alike.twins.push_back(
        {.name = pattern, .path = {}, .members = {{without_numbers(name), pattern}}});
  }
  if (!same_kinds(alike)) return;
  ways_.refuse(fmt::format("its data sets are called as '{}' and '{}' are, in groups that may be a "
                           "sample each, or hold a sample in each {}",
                           shown_name(of_.names.front()), shown_name(of_.names.back()),
                           each[0].ends_with('*') ? "data set" : "group"),
               {{ways_.named(each), "a sample each"},
                {found.others.empty() ? ways_.named(found.patterns) : std::string(),
                 "a sample of each group"}});
}

/// Of several numbers in a step any may tell samples apart, and the others fields.
void Judge::refuse_mixed(const NamedSamples& found) const {
  ways_.refuse(
      fmt::format("its data sets are called as '{}' and '{}' are, with several numbers: each "
                  "may be a sample, or a field of samples that one of the numbers tells apart",
                  shown_name(found.at(0, 0)), shown_name(found.at(0, found.keys.size() - 1))),
      {{ways_.each_a_sample(found), "a sample each"},
       {ways_.fields_of_all(twins_of(found.by_single_numbers), false), "fields of one sample"},
       {ways_.rows_of_each(found), "rows of all"}});
}

void Judge::refuse_unclear(const NamedSamples& found, const Likeness& likeness) const {
  const std::string each = ways_.each_a_sample(found);
  const bool differ = each.empty() && !likeness.one_shape;
  ways_.refuse(
      fmt::format("its data sets {} ({} of each, from '{}' to '{}') may be a sample each{}, or "
                  "hold a sample in each row",
                  list_of(found.patterns), found.keys.size(), shown_name(found.at(0, 0)),
                  shown_name(found.at(0, found.keys.size() - 1)),
                  differ ? ", which is not read where their shapes differ" : ""),
      {{each, "a sample each"},
       {found.in_groups() ? ways_.rows_of_one(found) : std::string(), "rows of one of them"},
       {ways_.rows_of_each(found), "rows of all"}});
}

/// Whether all are columns of one length.
bool Judge::is_table(std::span<const std::string> names) const {
  std::set<std::vector<std::uint64_t>> shapes;
  for (const std::string& name : names) shapes.insert(shape(name));
  return shapes.size() == 1 && shapes.begin()->size() == 1;
}

Likeness Judge::likeness_of(const NamedSamples& found) const {
  Likeness all;
  std::vector<Id> types(found.patterns.size());  // of the first sample, as the shapes are
  std::vector<std::vector<std::uint64_t>> shapes(found.patterns.size());
  for (std::size_t s = 0; s < found.keys.size(); ++s) {
    std::optional<std::uint64_t> of_sample;
    for (std::size_t p = 0; p < found.patterns.size(); ++p) {
      const Id id = of_.open(found.at(p, s));
      const auto shape = shape_of(id.get());
      Id type(H5Dget_type(id.get()), H5Tclose);
      if (s == 0) {
        types[p] = std::move(type);
        shapes[p] = shape;
      } else {
        all.one_type = all.one_type && H5Tequal(types[p].get(), type.get()) > 0;
        all.one_shape = all.one_shape && shape == shapes[p];
      }
      all.single = all.single || shape.empty();
      const std::uint64_t rows = shape.empty() ? 1 : shape[0];
      if (s == 0 && p == 0) all.rows = rows;
      all.same = all.same && rows == all.rows;
      all.tables = all.tables && rows == of_sample.value_or(rows);
      all.columns = all.columns && shape.size() == 1;
      of_sample = rows;
    }
  }
  return all;
}

/// What names suggest is so, by the shapes: never where each row may be a sample as well.
Meaning Judge::meaning_of(const NamedSamples& found, const Likeness& likeness) const {
  if (likeness.single) return Meaning::samples;
  if (!likeness.same) {
    const bool tables = likeness.tables && found.patterns.size() > 1 && found.in_groups();
    return tables ? Meaning::either : Meaning::samples;
  }
  if (!likeness.one_type) return Meaning::rows;
  const auto fits = [&](const std::string& name) {
    const auto other = shape(name);
    return !other.empty() && other[0] == likeness.rows;
  };
  if (!found.others.empty() && std::ranges::all_of(found.others, fits)) return Meaning::rows;
  // A table may have more columns than rows.
  const bool table = likeness.columns && !found.in_groups();
  if (found.keys.size() > likeness.rows && !table) return Meaning::samples;
  const bool pair = found.keys.size() == 2 && !found.in_groups() && found.others.empty();
  return pair ? Meaning::rows : Meaning::either;
}

std::vector<std::string> Judge::notes_of_samples(const NamedSamples& found,
                                                 const Likeness& likeness) const {
  std::vector<std::string> notes{fmt::format(
      "each sample is taken to have data sets of its own: {} ({} samples); name data sets whose "
      "rows are samples: FILE#NAME,NAME",
      list_of(found.patterns), found.keys.size())};
  if (found.others.empty()) return notes;
  notes.push_back("left out, as they belong to no sample: " + some_of(found.others));
  const std::vector<std::string> more = ways_.beside(found);
  const bool fields = likeness.one_type && likeness.one_shape;
  if (fields && !more.empty() && more.size() <= kMostNames && ways_.are_meant(found, more)) {
    notes.back() += fmt::format("; with a row for each of {}: '{}'", some_of(more),
                                ways_.shown(list_of(found.patterns) + "," + list_of(more)));
  }
  return notes;
}

std::string Judge::note_of_rows(const NamedSamples& found, const Likeness& likeness) const {
  std::string note =
      fmt::format("each row is taken for a sample, and {} for fields", list_of(found.patterns));
  if (found.lacking.empty() && likeness.one_type && likeness.one_shape &&
      ways_.are_meant(found, {})) {
    note += fmt::format("; where each of these is a sample: '{}'",
                        ways_.shown(list_of(found.patterns)));
  }
  return note;
}

Layout Judge::judge() {
  Layout layout{.samples = find_samples(of_.names), .notes = {}};
  const bool suggested = layout.samples.has_value();
  for (const Alike& alike :
       find_alike(suggested ? std::span<const std::string>(layout.samples->layout) : of_.names,
                  of_.group)) {
    if (alike.splits || same_kinds(alike)) refuse_alike(alike, !suggested);
    layout.notes.push_back(fmt::format(
        "{} hold data sets of the same names and other types, and are taken for parts of one "
        "sample; name one for it alone: '{}'",
        some_of(alike.names()), ways_.shown(ways_.one_of(alike.twins[0]))));
  }
  if (!suggested) return layout;
  require_no_grid(*layout.samples);
  const std::vector<std::string> single = layout.samples->by_single_numbers;
  const bool mixed = !single.empty() && same_kinds(twins_of(single));
  if (!single.empty() && !mixed) layout.samples = match_samples(of_.names, single);
  decide(without_words(*std::exchange(layout.samples, {})), mixed, layout);
  return layout;
}

/// By the shapes of what was found by names. `mixed`: these differ in several numbers of a step.
void Judge::decide(const NamedSamples& found, bool mixed, Layout& layout) const {
  if (!found.lacking.empty()) {
    if (is_table(of_.names)) return layout.notes.push_back(note_of_rows(found, {}));
    require_whole(found, of_.path, of_.links, ways_.rows_of_all());
  }
  const Likeness likeness = likeness_of(found);
  const Meaning meaning = meaning_of(found, likeness);
  if (meaning == Meaning::rows) return layout.notes.push_back(note_of_rows(found, likeness));
  if (mixed) refuse_mixed(found);
  if (meaning == Meaning::either) refuse_unclear(found, likeness);
  const auto notes = notes_of_samples(found, likeness);
  layout.notes.insert(layout.notes.end(), notes.begin(), notes.end());
  layout.samples = found;
}

}  // namespace

Layout judge_layout(const LayoutCase& of) { return Judge(of).judge(); }

void require_whole(const NamedSamples& samples, const std::string& path, const std::string& links,
                   const std::string& rows) {
  if (samples.lacking.empty()) return;
  std::vector<std::string> ways;
  if (!samples.whole.empty()) {
    ways.push_back(
        fmt::format("name what all samples have: '{}#{}'", path, list_of(samples.whole)));
  }
  if (!rows.empty()) {
    ways.push_back(fmt::format("where rows are samples name all data sets: '{}#{}'", path, rows));
  }
  if (ways.empty()) ways.emplace_back("write what is missing, or leave one of the names out");
  throw Error(ErrorKind::corrupt,
              links.empty() ? samples.lacking : fmt::format("{} ({})", samples.lacking, links),
              fmt::format("{}", fmt::join(ways, "; or ")), {.file = path});
}

std::string some_of(std::span<const std::string> names) {
  if (names.empty()) return "none";
  std::vector<std::string> shown;
  for (const std::string& name : names.first(std::min(names.size(), kMostNames))) {
    shown.push_back(shown_name(name));
  }
  if (names.size() > kMostNames) shown.push_back(fmt::format("{} more", names.size() - kMostNames));
  return fmt::format("{}", fmt::join(shown, ", "));
}

}  // namespace forebay::hdf5
