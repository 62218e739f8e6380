#include "format/hdf5/layout.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>
#include <tuple>

#include "format/dataset_files.hpp"
#include "format/hdf5/dataset.hpp"

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
  bool columns = true;   // all have one dimension
  std::uint64_t rows = 0;
};

class Judge {
 public:
  explicit Judge(const LayoutCase& of) : of_(of) {}

  Layout judge();

 private:
  std::string choice(const std::string& what) const { return of_.path + "#" + what; }
  /// All rows of the file, or of the group.
  std::string rows_of_all() const {
    return choice(of_.group.empty() ? "/[:]" : of_.group.substr(0, of_.group.size() - 1) + "[:]");
  }
  std::vector<std::uint64_t> shape(const std::string& name) const {
    return shape_of(of_.open(name).get());
  }
  bool is_table(std::span<const std::string> names) const;
  Likeness likeness_of(const NamedSamples& found) const;
  bool are_samples(const NamedSamples& found) const;
  std::set<Kind> kinds(const std::string& name_or_pattern) const;
  bool same_kinds(const Alike& alike) const;
  std::string choice_of(const Twin& twin) const;
  std::string samples_of_all(const Alike& alike) const;
  std::string fields_of_all(const Alike& alike, bool rows) const;
  [[noreturn]] void refuse_alike(const Alike& alike, bool rows) const;
  void require_no_grid(const NamedSamples& found) const;
  [[noreturn]] void refuse_unclear(const NamedSamples& found, bool same) const;

  const LayoutCase& of_;
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

/// Whether any that are called the same may be the same: images and depths, one beside the other,
/// never are.
bool Judge::same_kinds(const Alike& alike) const {
  for (const auto& [member, first] : alike.twins[0].members) {
    std::set<Kind> all;
    std::size_t count = 0;
    for (const Twin& twin : alike.twins) {
      const auto more = kinds(twin.members.at(member));
      all.insert(more.begin(), more.end());
      count += more.size();
    }
    if (all.size() < count) return true;
  }
  return false;
}

/// How to name one of several that are alike.
std::string Judge::choice_of(const Twin& twin) const {
  return choice(twin.path.empty() ? list_of_members(twin, of_.group) : list_of({&twin.path, 1}));
}

/// The samples of all groups, where these hold samples; else empty.
std::string Judge::samples_of_all(const Alike& alike) const {
  const Twin& first = alike.twins[0];
  if (alike.splits) return {};
  const std::string parent = first.path.substr(0, first.path.size() - first.name.size());
  std::vector<std::string> patterns;
  for (const auto& [member, path] : first.members) {
    patterns.push_back(parent + "*/" + member);
    const auto stars = stars_of(patterns.back());
    if (!stars || stars->end == parent.size() + 1) return {};
  }
  return choice(list_of(patterns));
}

/// All as fields of one sample, where that works; else empty.
std::string Judge::fields_of_all(const Alike& alike, bool rows) const {
  if (rows) {
    std::set<std::uint64_t> lengths;
    for (const std::string& name : of_.names) {
      if (const auto here = shape(name); !here.empty()) lengths.insert(here[0]);
    }
    return lengths.size() == 1 ? rows_of_all() : std::string();
  }
  const std::vector<std::string> stored = alike.stored();
  const bool patterns =
      std::ranges::all_of(stored, [](const auto& name) { return stars_of(name).has_value(); });
  if (!patterns || stored.size() > kMostNames) return {};
  if (!match_samples(of_.names, stored).lacking.empty()) return {};
  return choice(list_of_all(alike, of_.group));
}

void Judge::refuse_alike(const Alike& alike, bool rows) const {
  const std::vector<std::string> names = alike.names();
  std::string ways = fmt::format("'{}' for {} alone", choice_of(alike.twins[0]), names[0]);
  if (const std::string samples = samples_of_all(alike); !samples.empty()) {
    ways += fmt::format(", '{}' for the samples of all groups", samples);
  }
  if (const std::string fields = fields_of_all(alike, rows); !fields.empty()) {
    ways += fmt::format(", '{}' for all as fields of one sample", fields);
  }
  throw Error(ErrorKind::usage,
              fmt::format("its data sets {} have the same names in {}: these may be {}",
                          some_of(alike.stored()), some_of(names),
                          alike.splits ? "splits" : "classes, splits, or fields of one sample"),
              "say which: " + ways, {.file = of_.path});
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

/// Groups with numbers, of data sets with numbers, may be samples, or classes of such: 3/017.
void Judge::require_no_grid(const NamedSamples& found) const {
  if (found.patterns.size() < 2 || !found.in_groups()) return;
  const std::string each = without_numbers(of_.names[0]);
  if (std::ranges::any_of(of_.names,
                          [&](const auto& name) { return without_numbers(name) != each; })) {
    return;
  }
  Alike alike;
  for (const std::string& pattern : found.patterns) {
    alike.twins.push_back({.name = pattern, .path = {}, .members = {{each, pattern}}});
  }
  if (!same_kinds(alike)) return;
  std::string ways = fmt::format("'{}' for a sample each", choice(list_of({&each, 1})));
  if (found.lacking.empty() && found.others.empty()) {
    ways += fmt::format(", '{}' for a sample of each group", choice(list_of(found.patterns)));
  }
  throw Error(ErrorKind::usage,
              fmt::format("its data sets are called as '{}' and '{}' are, in groups that may be a "
                          "sample each, or hold a sample in each data set",
                          shown_name(of_.names.front()), shown_name(of_.names.back())),
              "say which: " + ways, {.file = of_.path});
}

/// `same`: all have as many rows.
void Judge::refuse_unclear(const NamedSamples& found, bool same) const {
  std::string ways = fmt::format("'{}' for a sample each", choice(list_of(found.patterns)));
  if (found.in_groups()) {
    std::vector<std::string> one;
    for (std::size_t p = 0; p < found.patterns.size(); ++p) one.push_back(found.at(p, 0));
    ways += fmt::format(", '{}' for rows of one of them", choice(list_of(one)));
  }
  if (same) {
    std::vector<std::string> rows;
    for (const std::string& pattern : found.patterns) rows.push_back(pattern + "[:]");
    ways += fmt::format(", '{}' for rows of all", choice(list_of(rows)));
  }
  throw Error(
      ErrorKind::usage,
      fmt::format("its data sets {} ({} of each, from '{}' to '{}') may be a sample each, or "
                  "hold a sample in each row",
                  list_of(found.patterns), found.keys.size(), shown_name(found.at(0, 0)),
                  shown_name(found.at(0, found.keys.size() - 1))),
      "say which: " + ways, {.file = of_.path});
}

/// Whether all are columns of one length.
bool Judge::is_table(std::span<const std::string> names) const {
  std::set<std::vector<std::uint64_t>> shapes;
  for (const std::string& name : names) shapes.insert(shape(name));
  return shapes.size() == 1 && shapes.begin()->size() == 1;
}

Likeness Judge::likeness_of(const NamedSamples& found) const {
  Likeness all;
  std::vector<Id> types(found.patterns.size());  // of the first sample
  for (std::size_t s = 0; s < found.keys.size(); ++s) {
    std::optional<std::uint64_t> of_sample;
    for (std::size_t p = 0; p < found.patterns.size(); ++p) {
      const Id id = of_.open(found.at(p, s));
      const auto shape = shape_of(id.get());
      if (shape.empty()) return {.single = true};
      Id type(H5Dget_type(id.get()), H5Tclose);
      if (s == 0) {
        types[p] = std::move(type);
      } else {
        all.one_type = all.one_type && H5Tequal(types[p].get(), type.get()) > 0;
      }
      if (s == 0 && p == 0) all.rows = shape[0];
      all.same = all.same && shape[0] == all.rows;
      all.tables = all.tables && shape[0] == of_sample.value_or(shape[0]);
      all.columns = all.columns && shape.size() == 1;
      of_sample = shape[0];
    }
  }
  return all;
}

/// Whether what names suggest is so, by the shapes: never where each row may be a sample as well.
bool Judge::are_samples(const NamedSamples& found) const {
  if (!found.lacking.empty()) {
    if (is_table(of_.names)) return false;
    require_whole(found, of_.path, of_.links);
  }
  const Likeness likeness = likeness_of(found);
  if (likeness.single) return true;
  if (!likeness.same) {
    if (!likeness.tables || found.patterns.size() == 1 || !found.in_groups()) return true;
    refuse_unclear(found, false);
  }
  if (!likeness.one_type) return false;
  const auto fits = [&](const std::string& name) {
    const auto other = shape(name);
    return !other.empty() && other[0] == likeness.rows;
  };
  if (!found.others.empty() && std::ranges::all_of(found.others, fits)) return false;
  // A table may have more columns than rows.
  const bool table = likeness.columns && !found.in_groups();
  if (found.keys.size() > likeness.rows && !table) return true;
  if (found.keys.size() == 2 && !found.in_groups() && found.others.empty()) return false;
  refuse_unclear(found, true);
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
        some_of(alike.names()), choice_of(alike.twins[0])));
  }
  if (!suggested) return layout;
  require_no_grid(*layout.samples);
  if (are_samples(*layout.samples)) {
    layout.notes.push_back(fmt::format(
        "each sample is taken to have data sets of its own: {} ({} samples); name data sets whose "
        "rows are samples: FILE#NAME,NAME",
        list_of(layout.samples->patterns), layout.samples->keys.size()));
    if (!layout.samples->others.empty()) {
      layout.notes.push_back("left out, as they belong to no sample: " +
                             some_of(layout.samples->others));
    }
    return layout;
  }
  layout.notes.push_back(
      fmt::format("each row is taken for a sample, and {} for fields; where each of these is a "
                  "sample: '{}'",
                  list_of(layout.samples->patterns), choice(list_of(layout.samples->patterns))));
  layout.samples.reset();
  return layout;
}

}  // namespace

Layout judge_layout(const LayoutCase& of) { return Judge(of).judge(); }

void require_whole(const NamedSamples& samples, const std::string& path, const std::string& links) {
  if (samples.lacking.empty()) return;
  throw Error(ErrorKind::corrupt,
              links.empty() ? samples.lacking : fmt::format("{} ({})", samples.lacking, links),
              "name what all samples have, FILE#*/NAME,*/NAME; or where rows are samples all data "
              "sets: FILE#/[:]",
              {.file = path});
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
