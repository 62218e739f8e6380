// What one file holds: data sets whose rows are samples, or those that samples have for themselves;
// found by the library, which is not used again.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>
#include <optional>
#include <set>

#include "format/hdf5/dataset.hpp"
#include "format/hdf5/open_hdf5.hpp"
#include "storage/url.hpp"

namespace forebay::hdf5 {
namespace {

constexpr std::size_t kMostNames = 20;  // in a message

std::string some_of(std::span<const std::string> names) {
  if (names.empty()) return "none";
  std::vector<std::string> shown;
  for (const std::string& name : names.first(std::min(names.size(), kMostNames))) {
    shown.push_back(shown_name(name));
  }
  if (names.size() > kMostNames) shown.push_back(fmt::format("{} more", names.size() - kMostNames));
  return fmt::format("{}", fmt::join(shown, ", "));
}

Error cannot_open(const Library& library, const DriverState& state, hid_t file,
                  const std::string& path) {
  if (state.failure) return *state.failure;
  const std::string reason = library.last_error();
  const Where where{.file = state.file->path()};
  const auto names = list_datasets(library, state, file);
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
  const std::size_t star = pattern.find('*');
  const std::size_t after = pattern.find('/', star);
  if (after != std::string::npos) return field_name(pattern.substr(after));
  std::string name = field_name(pattern.substr(0, star) + pattern.substr(star + 1));
  constexpr const char* kApart = "._-";
  name.erase(0, std::min(name.find_first_not_of(kApart), name.size()));
  name.erase(name.find_last_not_of(kApart) + 1);
  return name.empty() ? "data" : name;
}

std::string list_of(std::span<const std::string> names) {
  std::vector<std::string> shown;
  for (const std::string& name : names) shown.push_back(shown_name(name));
  return fmt::format("{}", fmt::join(shown, ","));
}

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
    const bool told = std::ranges::count(notes_, text) > 0 || notes_.size() == kMostNotes;
    if (!told) notes_.push_back(text);
  }
  Id open(OpenFile& file, const std::string& stored) const;
  OpenFile& follow(const Elsewhere& link, const std::string& stored);
  std::vector<FileField> read_all(const std::vector<std::string>& names);
  FileField read_chosen(const FieldChoice& choice);
  FileContent read_samples(const NamedSamples& samples, std::span<const FieldChoice> choices);
  FileContent read_by_choice(std::span<const FieldChoice> choices);
  bool are_samples(const NamedSamples& found, std::span<const std::string> names);
  std::string links_left_out() const;
  void require_whole(const NamedSamples& samples) const;
  std::optional<std::uint64_t> rows_of(const std::string& stored);
  [[noreturn]] void refuse_unclear(const NamedSamples& found) const;

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

/// Nothing for a single value.
std::optional<std::uint64_t> FileReader::rows_of(const std::string& stored) {
  const auto shape = shape_of(open(main_, stored).get());
  return shape.empty() ? std::nullopt : std::optional(shape[0]);
}

/// Of samples that have data sets of their own, in words; empty: there are none.
std::string FileReader::links_left_out() const {
  const hid_t file = main_.opened.get();
  std::vector<std::string> links = list_second_names(file);
  for (const LinkKind kind : {LinkKind::soft, LinkKind::external}) {
    std::ranges::copy(list_links(file, kind), std::back_inserter(links));
  }
  return links.empty() ? std::string() : "left out, as links are no samples: " + some_of(links);
}

void FileReader::require_whole(const NamedSamples& samples) const {
  if (samples.lacking.empty()) return;
  const std::string links = links_left_out();
  throw Error(ErrorKind::corrupt,
              links.empty() ? samples.lacking : fmt::format("{} ({})", samples.lacking, links),
              "name what all samples have: FILE#*/NAME,*/NAME", {.file = path()});
}

void FileReader::refuse_unclear(const NamedSamples& found) const {
  const bool groups = found.in_groups();
  std::vector<std::string> rows;
  for (std::size_t s = 0; s < std::min(found.keys.size(), groups ? 1 : kMostNames); ++s) {
    for (std::size_t p = 0; p < found.patterns.size(); ++p) rows.push_back(found.at(p, s));
  }
  throw Error(
      ErrorKind::usage,
      fmt::format("its data sets {} ({} of each, from '{}' to '{}') may be a sample each, or "
                  "hold a sample in each row",
                  list_of(found.patterns), found.keys.size(), shown_name(found.at(0, 0)),
                  shown_name(found.at(0, found.keys.size() - 1))),
      fmt::format("say which: '{}#{}' for a sample each, '{}#{}' for rows", path(),
                  list_of(found.patterns), path(), list_of(rows)),
      {.file = path()});
}

/// Whether what names suggest is so, by the shapes: never where each row may be a sample as well.
bool FileReader::are_samples(const NamedSamples& found, std::span<const std::string> names) {
  if (!found.lacking.empty()) {
    std::set<std::optional<std::uint64_t>> all;
    for (const std::string& name : names) all.insert(rows_of(name));
    if (all.size() == 1 && *all.begin()) return false;
    require_whole(found);
  }
  std::optional<std::uint64_t> rows;
  std::vector<Id> types(found.patterns.size());  // of the first sample
  bool same = true;                              // all have as many rows
  bool tables = true;                            // those of one sample have
  bool one_type = true;                          // all of a pattern have, as columns need not
  for (std::size_t s = 0; s < found.keys.size(); ++s) {
    std::optional<std::uint64_t> of_sample;
    for (std::size_t p = 0; p < found.patterns.size(); ++p) {
      const Id id = open(main_, found.at(p, s));
      const auto shape = shape_of(id.get());
      if (shape.empty()) return true;
      const std::optional here = shape[0];
      Id type(H5Dget_type(id.get()), H5Tclose);
      if (s == 0) {
        types[p] = std::move(type);
      } else {
        one_type = one_type && H5Tequal(types[p].get(), type.get()) > 0;
      }
      same = same && here == rows.value_or(*here);
      tables = tables && here == of_sample.value_or(*here);
      rows = rows.value_or(*here);
      of_sample = here;
    }
  }
  if (!same) {
    if (!tables || found.patterns.size() == 1 || !found.in_groups()) return true;
    refuse_unclear(found);
  }
  if (!one_type) return false;
  std::size_t fitting = 0;  // others that have as many rows
  for (const std::string& name : found.others) {
    if (rows_of(name) == rows) ++fitting;
  }
  if (fitting > 0 && fitting == found.others.size()) return false;
  if (found.keys.size() > *rows) return true;
  if (found.keys.size() == 2 && !found.in_groups() && found.others.empty()) return false;
  refuse_unclear(found);
}

FileContent FileReader::read_samples(const NamedSamples& samples,
                                     std::span<const FieldChoice> choices) {
  if (const std::string links = links_left_out(); !links.empty()) note(links);
  FileContent content{.fields = {}, .keys = samples.keys, .parts = {}};
  bool alike = true;
  for (std::size_t p = 0; p < samples.patterns.size(); ++p) {
    std::vector<Dataset> all;
    for (std::size_t s = 0; s < samples.keys.size(); ++s) {
      const std::string stored = samples.at(p, s);
      const Id id = open(main_, stored);
      all.push_back(read_dataset(library_, main_.state, id.get(), stored, SampleIs::whole));
      Field& field = all.back().field;
      field.name = choices.empty() || choices[p].name.empty() ? name_of_pattern(samples.patterns[p])
                                                              : choices[p].name;
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

std::vector<FileField> FileReader::read_all(const std::vector<std::string>& names) {
  std::vector<FileField> fields;
  std::vector<std::string> single;
  for (const std::string& name : names) {
    if (rows_of(name)) {
      fields.push_back(read_chosen({.name = {}, .stored = name}));
    } else {
      single.push_back(name);
    }
  }
  for (const std::string& name : list_links(main_.opened.get(), LinkKind::external)) {
    try {
      fields.push_back(read_chosen({.name = {}, .stored = name}));
    } catch (const Error& error) {
      if (error.kind() == ErrorKind::io) throw;
      note(fmt::format("left out: {}", error.happened()));
    }
  }
  const auto dangling = list_links(main_.opened.get(), LinkKind::dangling);
  if (!dangling.empty())
    note("left out, as soft links to what is not in this file: " + some_of(dangling));
  if (!single.empty()) note("left out, as single values: " + some_of(single));
  return fields;
}

/// Those with a '*' that is in no name are of samples that have data sets of their own; beside them
/// may be others that have a row for each.
FileContent FileReader::read_by_choice(std::span<const FieldChoice> choices) {
  const auto is_starred = [&](const FieldChoice& choice) {
    const bool literal = H5Lexists(main_.opened.get(), choice.stored.c_str(), H5P_DEFAULT) > 0;
    return !literal && std::ranges::count(choice.stored, '*') == 1;
  };
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
  const auto names = list_datasets(library_, main_.state, main_.opened.get());
  const NamedSamples samples = match_samples(names, std::move(patterns));
  require_whole(samples);
  FileContent content = read_samples(samples, starred);
  if (rows.empty()) return content;
  if (content.fields.empty()) {
    throw Error(ErrorKind::unsupported,
                fmt::format("samples have different lengths, and no rows of '{}' beside them",
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

FileContent FileReader::read(std::span<const FieldChoice> choices) {
  if (!choices.empty()) return read_by_choice(choices);
  const auto names = list_datasets(library_, main_.state, main_.opened.get());
  const auto found = find_samples(names);
  if (found && are_samples(*found, names)) {
    note(
        fmt::format("each sample is taken to have data sets of its own: {} ({} samples); name "
                    "data sets whose rows are samples: FILE#NAME,NAME",
                    list_of(found->patterns), found->keys.size()));
    if (!found->others.empty()) {
      note("left out, as they belong to no sample: " + some_of(found->others));
    }
    return read_samples(*found, {});
  }
  FileContent content{.fields = read_all(names)};
  if (!content.fields.empty()) return content;
  throw Error(ErrorKind::not_found, "the file holds no data set with samples",
              "give a file whose data sets have a first dimension", {.file = path()});
}

}  // namespace

FileContent read_file(const std::shared_ptr<const File>& file, std::span<const FieldChoice> choices,
                      std::vector<std::string>& notes) {
  return FileReader(file, notes).read(choices);
}

}  // namespace forebay::hdf5
