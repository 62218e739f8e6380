// What one file holds: data sets whose rows are samples, or those that samples have for themselves;
// found by the library, which is not used again.
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <optional>
#include <utility>

#include "format/hdf5/dataset.hpp"
#include "format/hdf5/layout.hpp"
#include "storage/url.hpp"

namespace forebay::hdf5 {
namespace {

bool is_group(hid_t file, const std::string& path) {
  return Id(H5Gopen2(file, path.c_str(), H5P_DEFAULT), H5Gclose).valid();
}

Error cannot_open(const Library& library, const DriverState& state, hid_t file,
                  const std::string& path) {
  if (state.failure) return *state.failure;
  const std::string reason = library.last_error();
  const Where where{.file = state.file->path()};
  const auto names = list_names(library, state, file).datasets;
  if (std::ranges::find(names, path) != names.end()) {
    return {ErrorKind::corrupt,
            fmt::format("data set '{}' cannot be opened: {}", shown_name(path), reason),
            "the file is damaged: restore it from a copy", where};
  }
  if (const auto target = dangling_target(file, path)) {
    return {ErrorKind::not_found,
            fmt::format(
                "there is no data set '{}': a soft link leads to '{}', which is not in this file",
                shown_name(path), shown_name(*target)),
            "name another, or write what the link leads to", where};
  }
  if (is_group(file, path)) {
    return {ErrorKind::usage, fmt::format("'{}' is a group, not a data set", shown_name(path)),
            "name it alone, 'FILE#GROUP', or data sets of it", where};
  }
  return {ErrorKind::not_found,
          fmt::format("there is no data set '{}'; it has {}", shown_name(path), some_of(names)),
          "correct the name after the '#'", where};
}

/// A file while the library has it open.
struct OpenFile {
  OpenFile(const Library& library, std::shared_ptr<const File> file)
      : state{.file = std::move(file)}, opened(library, state) {}

  DriverState state;
  DriverFile opened;
};

/// "img" of "img_*", "image" of "*/image", "images" of "images/*".
std::string name_of_pattern(const std::string& pattern) {
  const Stars stars = *stars_of(pattern);
  const std::size_t after = pattern.find('/', stars.end);
  if (after != std::string::npos) return field_name(pattern.substr(after));
  std::string name = field_name(pattern.substr(0, stars.begin) + pattern.substr(stars.end));
  constexpr const char* kApart = "._-";
  name.erase(0, std::min(name.find_first_not_of(kApart), name.size()));
  name.erase(name.find_last_not_of(kApart) + 1);
  return name.empty() ? "data" : name;
}

/// What stands behind a name whose rows are samples, whatever names and shapes suggest.
constexpr std::string_view kRows = "[:]";

/// Uses the library while it lives.
class FileReader {
 public:
  FileReader(std::shared_ptr<const File> file, std::vector<std::string>& notes)
      : main_(library_, std::move(file)), notes_(notes) {}

  FileContent read(std::span<const FieldChoice> choices);

 private:
  const std::string& path() const { return main_.state.file->path(); }
  void note(const std::string& text) {
    constexpr std::size_t kMostNotes = 8;
    if (std::ranges::count(notes_, text) > 0 || notes_.size() > kMostNotes) return;
    notes_.push_back(notes_.size() < kMostNotes ? text : "more is left out; inspect a file alone");
  }
  Id open(OpenFile& file, const std::string& stored) const;
  OpenFile& follow(const Elsewhere& link, const std::string& stored);
  bool is_literal(const std::string& name) const {
    return H5Lexists(main_.opened.get(), name.c_str(), H5P_DEFAULT) > 0;
  }
  bool is_starred(const FieldChoice& choice) const {
    return stars_of(choice.stored) && !is_literal(choice.stored);
  }
  Listing names(const std::string& group = {}) const {
    return list_names(library_, main_.state, main_.opened.get(), group);
  }
  FileField read_chosen(const FieldChoice& choice);
  FileContent read_group(const std::string& group, bool rows);
  std::vector<FileField> read_rows(const Listing& listing, std::size_t prefix);
  FileContent read_samples(const NamedSamples& samples, std::span<const FieldChoice> choices,
                           const std::string& links);
  std::vector<FieldChoice> without_rows_marks(std::span<const FieldChoice> choices) const;
  void add_second_names(Listing& listing) const;
  Listing names_for_patterns(std::span<const FieldChoice> choices) const;
  bool reads(const std::string& choices);
  FileContent read_by_choice(std::span<const FieldChoice> choices);

  const Library library_;
  OpenFile main_;
  std::vector<std::unique_ptr<OpenFile>> others_;
  std::vector<std::string>& notes_;
};

Id FileReader::open(OpenFile& file, const std::string& stored) const {
  Id id(H5Dopen2(file.opened.get(), stored.c_str(), H5P_DEFAULT), H5Dclose);
  if (!id.valid()) throw cannot_open(library_, file.state, file.opened.get(), stored);
  return id;
}

/// The file that a link leads to, where it lies in the folder of this one, or below.
OpenFile& FileReader::follow(const Elsewhere& link, const std::string& stored) {
  namespace fs = std::filesystem;
  const auto refuse = [&](ErrorKind kind, const std::string& why, const std::string& remedy) {
    throw Error(kind,
                fmt::format("'{}' is a link to '{}' of another file, {}, {}", shown_name(stored),
                            shown_name(link.object), shown_name(link.file), why),
                remedy, {.file = path()});
  };
  if (is_foreign(path())) {
    refuse(ErrorKind::unsupported, "and links are followed on file systems alone",
           "name that file instead");
  }
  const fs::path folder = fs::absolute(without_file_scheme(path())).parent_path();
  std::error_code error;
  const fs::path target = fs::weakly_canonical(folder / link.file, error);
  const fs::path root = fs::weakly_canonical(folder, error);
  if (std::ranges::mismatch(root, target).in1 != root.end()) {
    refuse(ErrorKind::unsupported, "which is outside of the folder of this one",
           "name that file instead, or copy it into the folder");
  }
  if (!fs::is_regular_file(target, error)) {
    refuse(ErrorKind::not_found, "which is not there", "copy it there from its source");
  }
  for (const auto& other : others_) {
    if (other->state.file->path() == target) return *other;
  }
  const Engine engine = main_.state.file->map().empty() ? Engine::pread : Engine::mmap;
  others_.push_back(std::make_unique<OpenFile>(library_, open_file(target, engine)));
  return *others_.back();
}

FileField FileReader::read_chosen(const FieldChoice& choice) {
  const auto link = external_link(main_.opened.get(), choice.stored);
  OpenFile& file = link ? follow(*link, choice.stored) : main_;
  const std::string stored = link ? link->object : choice.stored;
  try {
    Dataset found = read_dataset(library_, file.state, open(file, stored).get(), stored);
    found.field.name = choice.name.empty() ? field_name(choice.stored) : choice.name;
    return {.field = std::move(found.field),
            .storage = std::move(found.storage),
            .rows = found.rows,
            .elsewhere = link ? file.state.file : nullptr};
  } catch (const Error& error) {
    if (!link) throw;
    throw Error(error.kind(),
                fmt::format("'{}' is a link to '{}' of {}: {}", shown_name(choice.stored),
                            shown_name(stored), shown_name(link->file), error.happened()),
                error.remedy(), error.within({.file = path()}).where());
  }
}

/// Of samples that have data sets of their own, in words; empty: there are none.
std::string links_left_out(const Listing& listing) {
  const auto links = listing.links();
  return links.empty() ? std::string() : "left out, as links are no samples: " + some_of(links);
}

/// A choice for each pattern.
FileContent FileReader::read_samples(const NamedSamples& samples,
                                     std::span<const FieldChoice> choices,
                                     const std::string& links) {
  if (!links.empty()) note(links);
  FileContent content{.fields = {}, .keys = samples.keys, .parts = {}};
  bool alike = true;
  for (std::size_t p = 0; p < samples.patterns.size(); ++p) {
    std::vector<Dataset> all;
    for (std::size_t s = 0; s < samples.keys.size(); ++s) {
      const std::string stored = samples.at(p, s);
      const Id id = open(main_, stored);
      all.push_back(read_dataset(library_, main_.state, id.get(), stored, SampleIs::whole));
      Field& field = all.back().field;
      field.name = choices[p].name.empty() ? name_of_pattern(samples.patterns[p]) : choices[p].name;
      alike = alike && field == all[0].field;
    }
    content.parts.push_back(std::move(all));
  }
  if (!alike) return content;
  for (const std::vector<Dataset>& all : content.parts) {
    content.fields.push_back(
        {.field = all[0].field, .storage = one_behind_the_other(all), .rows = all.size()});
  }
  return content;
}

/// All that have rows, called by what follows `prefix` characters of their paths.
std::vector<FileField> FileReader::read_rows(const Listing& listing, std::size_t prefix) {
  const auto choice = [&](const std::string& name) {
    return FieldChoice{.name = field_name(name.substr(prefix)), .stored = name};
  };
  std::vector<FileField> fields;
  std::vector<std::string> single;
  for (const std::string& name : listing.datasets) {
    if (shape_of(open(main_, name).get()).empty()) {
      single.push_back(name);
    } else {
      fields.push_back(read_chosen(choice(name)));
    }
  }
  for (const std::string& name : listing.external) {
    try {
      fields.push_back(read_chosen(choice(name)));
    } catch (const Error& error) {
      if (error.kind() == ErrorKind::io) throw;
      note(fmt::format("left out: {}", error.happened()));
    }
  }
  std::vector<std::string> aliases = listing.aliases;
  std::vector<std::string> dangling;
  for (const std::string& name : listing.soft) {
    (leads_somewhere(main_.opened.get(), name) ? aliases : dangling).push_back(name);
  }
  if (!aliases.empty()) {
    note(fmt::format("left out, as other names of what is read: {}; name them for it: '{}#{}'",
                     some_of(aliases), path(), shown_name(aliases[0])));
  }
  if (!dangling.empty())
    note("left out, as soft links to what is not in this file: " + some_of(dangling));
  if (!single.empty()) note("left out, as single values: " + some_of(single));
  return fields;
}

/// Those of choices that are rows of all that a pattern stands for.
std::vector<FieldChoice> FileReader::without_rows_marks(
    std::span<const FieldChoice> choices) const {
  std::vector<FieldChoice> plain;
  for (const FieldChoice& choice : choices) {
    const std::string& stored = choice.stored;
    if (!stored.ends_with(kRows) || is_literal(stored)) {
      plain.push_back(choice);
      continue;
    }
    const std::string name = stored.substr(0, stored.size() - kRows.size());
    if (!stars_of(name) || is_literal(name)) {
      plain.push_back({.name = choice.name, .stored = name});
      continue;
    }
    if (!choice.name.empty()) {
      throw Error(ErrorKind::usage,
                  fmt::format("'{}' may be many fields, which cannot all be called '{}'",
                              shown_name(stored), choice.name),
                  "leave the name out", {.file = path()});
    }
    const NamedSamples all = match_samples(names_for_patterns(choices).datasets, {name});
    for (std::size_t s = 0; s < all.keys.size(); ++s) {
      plain.push_back({.name = {}, .stored = all.at(0, s)});
    }
  }
  return plain;
}

/// What was asked for by name is read whatever else it is called.
void FileReader::add_second_names(Listing& listing) const {
  for (const std::string& alias : std::exchange(listing.aliases, {})) {
    if (is_group(main_.opened.get(), alias)) {
      const auto inside = names(alias).datasets;
      listing.datasets.insert(listing.datasets.end(), inside.begin(), inside.end());
    } else {
      listing.datasets.push_back(alias);
    }
  }
}

/// What a '*' may stand for: not what is named by itself beside it.
Listing FileReader::names_for_patterns(std::span<const FieldChoice> choices) const {
  Listing listing = names();
  add_second_names(listing);
  for (const FieldChoice& choice : choices) {
    const std::string& name = choice.stored;
    std::erase(listing.datasets, name.substr(std::min(name.find_first_not_of('/'), name.size())));
  }
  return listing;
}

/// Those with a '*' that is in no name are of samples that have data sets of their own; beside them
/// may be others that have a row for each.
FileContent FileReader::read_by_choice(std::span<const FieldChoice> choices) {
  std::vector<FieldChoice> starred;
  std::vector<FileField> rows;
  for (const FieldChoice& choice : choices) {
    if (is_starred(choice)) {
      starred.push_back(choice);
    } else {
      rows.push_back(read_chosen(choice));
    }
  }
  if (starred.empty()) return {.fields = std::move(rows)};
  std::vector<std::string> patterns;
  for (const FieldChoice& choice : starred) patterns.push_back(choice.stored);
  const Listing listing = names_for_patterns(choices);
  const NamedSamples samples = match_samples(listing.datasets, std::move(patterns));
  const std::string links = links_left_out(listing);
  require_whole(samples, path(), links);
  FileContent content = read_samples(samples, starred, links);
  if (rows.empty()) return content;
  if (content.fields.empty()) {
    throw Error(ErrorKind::unsupported,
                fmt::format("samples have different shapes, and no rows of '{}' beside them",
                            rows[0].field.name),
                "name either alone", {.file = path()});
  }
  content.parts.clear();
  // In the order of the choices.
  std::vector<FileField> fields;
  auto star = content.fields.begin();
  auto row = rows.begin();
  for (const FieldChoice& choice : choices) {
    fields.push_back(std::move(is_starred(choice) ? *star++ : *row++));
  }
  content.fields = std::move(fields);
  return content;
}

/// All of a file, or of a group of it, which is called as in names() then.
FileContent FileReader::read_group(const std::string& group, bool rows) {
  const std::string below = group.empty() ? group : group + "/";
  const Listing listing = names(group);
  if (!listing.with_attributes.empty()) {
    note(
        fmt::format("left out, as attributes are not read: those of {}; write them as data sets to "
                    "have them",
                    some_of(listing.with_attributes)));
  }
  if (!rows) {
    const std::string links = links_left_out(listing);
    const Layout layout =
        judge_layout({.path = path(),
                      .group = below,
                      .names = listing.datasets,
                      .links = links,
                      .open = [this](const std::string& name) { return open(main_, name); },
                      .reads = [this](const std::string& choices) { return reads(choices); }});
    for (const std::string& text : layout.notes) note(text);
    if (layout.samples) {
      std::vector<FieldChoice> choices;
      for (const std::string& pattern : layout.samples->patterns) {
        choices.push_back(
            {.name = name_of_pattern(pattern.substr(below.size())), .stored = pattern});
      }
      const std::string ways = fmt::format("{}; with second names of samples: '{}#{}'", links,
                                           path(), list_of(layout.samples->patterns));
      return read_samples(*layout.samples, choices, listing.aliases.empty() ? links : ways);
    }
  }
  FileContent content{.fields = read_rows(listing, below.size())};
  if (!content.fields.empty()) return content;
  throw Error(ErrorKind::not_found,
              group.empty()
                  ? "the file holds no data set with samples"
                  : fmt::format("group '{}' holds no data set with samples", shown_name(group)),
              "give a file whose data sets have a first dimension", {.file = path()});
}

FileContent FileReader::read(std::span<const FieldChoice> choices) {
  if (choices.empty()) return read_group({}, false);
  const bool rows = choices[0].stored.ends_with(kRows) && !is_literal(choices[0].stored);
  std::string group = choices[0].stored;
  if (rows) group.resize(group.size() - kRows.size());
  if (choices.size() > 1 || !is_group(main_.opened.get(), group)) {
    return read_by_choice(without_rows_marks(choices));
  }
  if (!choices[0].name.empty()) {
    throw Error(ErrorKind::usage,
                fmt::format("'{}' is a group, whose data sets cannot all be called '{}'",
                            shown_name(group), choices[0].name),
                "leave the name out, or name data sets of it", {.file = path()});
  }
  group.erase(0, std::min(group.find_first_not_of('/'), group.size()));
  group.erase(group.find_last_not_of('/') + 1);
  return read_group(group, rows);
}

/// Whether `choices` can be read, as they stand behind a '#'; tells nothing of what is left out.
bool FileReader::reads(const std::string& choices) {
  const std::vector<std::string> notes = notes_;
  bool read_well = true;
  try {
    require_readable(read(parse_fields(choices, path())));
  } catch (const Error& error) {
    if (error.kind() == ErrorKind::io) throw;
    read_well = false;
  }
  notes_ = notes;
  return read_well;
}

}  // namespace

FileContent read_file(const std::shared_ptr<const File>& file, std::span<const FieldChoice> choices,
                      std::vector<std::string>& notes) {
  return FileReader(file, notes).read(choices);
}

}  // namespace forebay::hdf5
