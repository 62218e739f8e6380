#include "format/hdf5/open_hdf5.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <optional>

#include "format/field_files.hpp"
#include "format/hdf5/dataset.hpp"
#include "storage/url.hpp"

namespace forebay::hdf5 {
namespace {

constexpr std::array<unsigned char, 8> kSignature{0x89, 'H', 'D', 'F', '\r', '\n', 0x1a, '\n'};
constexpr std::size_t kMostNames = 20;  // in a message

/// Paths of the data sets that hard links lead to, sorted; the library visits each object once.
std::vector<std::string> list_datasets(const Library& library, const DriverState& state,
                                       hid_t file) {
  std::vector<std::string> names;
  // Generic, because the type of `info` depends on the library's version.
  const auto note = [](hid_t, const char* name, const auto* info, void* into) -> herr_t {
    try {
      if (info->type == H5O_TYPE_DATASET)
        static_cast<std::vector<std::string>*>(into)->push_back(name);
      return 0;
    } catch (const std::exception&) {
      return -1;
    }
  };
  if (H5Ovisit2(file, H5_INDEX_NAME, H5_ITER_INC, note, &names, H5O_INFO_BASIC) < 0) {
    if (state.failure) throw *state.failure;
    throw Error(ErrorKind::corrupt, "its data sets cannot be listed: " + library.last_error(),
                "the file is damaged: restore it from a copy, or name data sets with '#NAME,...'",
                {.file = state.file->path()});
  }
  std::ranges::sort(names);
  return names;
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

Error cannot_open(const Library& library, const DriverState& state, hid_t file,
                  const std::string& path) {
  if (state.failure) return *state.failure;
  const std::string reason = library.last_error();
  const Where where{.file = state.file->path()};
  const auto names = list_datasets(library, state, file);
  if (std::ranges::find(names, path) != names.end()) {
    return {ErrorKind::corrupt, fmt::format("data set '{}' cannot be opened: {}", path, reason),
            "the file is damaged: restore it from a copy", where};
  }
  return {ErrorKind::not_found,
          fmt::format("there is no data set '{}'; it has {}", path, some_of(names)),
          "correct the name after the '#'", where};
}

/// Paths of links to other files.
std::vector<std::string> list_external_links(hid_t file) {
  std::vector<std::string> names;
  const auto note = [](hid_t, const char* name, const auto* info, void* into) -> herr_t {
    try {
      if (info->type == H5L_TYPE_EXTERNAL)
        static_cast<std::vector<std::string>*>(into)->push_back(name);
      return 0;
    } catch (const std::exception&) {
      return -1;
    }
  };
  // Where it fails, listing data sets has failed as well.
  H5Lvisit(file, H5_INDEX_NAME, H5_ITER_INC, note, &names);
  std::ranges::sort(names);
  return names;
}

/// Where an external link leads to.
struct Elsewhere {
  std::string file;  ///< as the link has it
  std::string object;
};

/// Nothing unless `path`, or what it begins with, is such a link.
std::optional<Elsewhere> external_link(hid_t file, const std::string& path) {
  std::size_t end = path.find('/', 1);
  for (;; end = path.find('/', end + 1)) {
    const std::string begin = path.substr(0, end);
    H5L_info_t info{};
    if (H5Lget_info(file, begin.c_str(), &info, H5P_DEFAULT) < 0) return {};
    if (info.type == H5L_TYPE_EXTERNAL) {
      std::vector<char> value(info.u.val_size);
      const char* name = nullptr;
      const char* object = nullptr;
      if (H5Lget_val(file, begin.c_str(), value.data(), value.size(), H5P_DEFAULT) < 0 ||
          H5Lunpack_elink_val(value.data(), value.size(), nullptr, &name, &object) < 0) {
        return {};
      }
      return Elsewhere{.file = name, .object = object + path.substr(begin.size())};
    }
    if (end == std::string::npos) return {};
  }
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

std::string patterns_text(const NamedSamples& samples) {
  return fmt::format("{}", fmt::join(samples.patterns, ","));
}

/// The fields of one file; uses the library while it lives.
class FileReader {
 public:
  FileReader(std::shared_ptr<const File> file, std::vector<std::string>& notes)
      : main_(library_, std::move(file)), notes_(notes) {}

  /// `choices` empty: all.
  std::vector<FileField> read(std::span<const FieldChoice> choices);

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
  std::vector<FileField> read_samples(const NamedSamples& samples,
                                      std::span<const FieldChoice> choices);
  bool are_samples(const NamedSamples& found);
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

void FileReader::refuse_unclear(const NamedSamples& found) const {
  const bool groups = found.in_groups();
  std::vector<std::string> rows;
  for (std::size_t p = 0; groups && p < found.patterns.size(); ++p) rows.push_back(found.at(p, 0));
  for (std::size_t s = 0; !groups && s < std::min(found.keys.size(), kMostNames); ++s) {
    rows.push_back(found.at(0, s));
  }
  throw Error(
      ErrorKind::usage,
      fmt::format("its data sets {} ({} of each, from '{}' to '{}') may be a sample each, or "
                  "hold a sample in each row",
                  patterns_text(found), found.keys.size(), found.at(0, 0),
                  found.at(0, found.keys.size() - 1)),
      fmt::format("say which: '{}#{}' for a sample each, '{}#{}' for rows", path(),
                  patterns_text(found), path(), fmt::join(rows, ",")),
      {.file = path()});
}

/// Whether what names suggest is so, by the shapes: never where each row may be a sample as well.
bool FileReader::are_samples(const NamedSamples& found) {
  std::optional<std::uint64_t> rows;
  bool same = true;    // all have as many rows
  bool tables = true;  // those of one sample have
  for (std::size_t s = 0; s < found.keys.size(); ++s) {
    std::optional<std::uint64_t> of_sample;
    for (std::size_t p = 0; p < found.patterns.size(); ++p) {
      const auto here = rows_of(found.at(p, s));
      if (!here) return true;
      same = same && here == rows.value_or(*here);
      tables = tables && here == of_sample.value_or(*here);
      rows = rows.value_or(*here);
      of_sample = here;
    }
  }
  if (!same && (!tables || found.patterns.size() == 1 || !found.in_groups())) return true;
  if (!same) refuse_unclear(found);
  bool fits = false;  // others have as many rows
  for (const std::string& name : found.others) {
    const auto here = rows_of(name);
    if (here && here != rows) refuse_unclear(found);
    fits = fits || here.has_value();
  }
  if (fits || (found.keys.size() == 2 && !found.in_groups())) return false;
  if (found.keys.size() > *rows) return true;
  refuse_unclear(found);
}

std::vector<FileField> FileReader::read_samples(const NamedSamples& samples,
                                                std::span<const FieldChoice> choices) {
  std::vector<FileField> fields;
  for (std::size_t p = 0; p < samples.patterns.size(); ++p) {
    std::vector<Dataset> all;
    for (std::size_t s = 0; s < samples.keys.size(); ++s) {
      const std::string stored = samples.at(p, s);
      const Id id = open(main_, stored);
      all.push_back(read_dataset(library_, main_.state, id.get(), stored, SampleIs::whole));
      Field& field = all.back().field;
      field.name = choices.empty() || choices[p].name.empty() ? name_of_pattern(samples.patterns[p])
                                                              : choices[p].name;
      if (field == all[0].field) continue;
      throw Error(ErrorKind::unsupported,
                  fmt::format("samples are data sets of their own, of different shapes: '{}' is {} "
                              "but '{}' is {}",
                              all[0].stored, to_string(Schema{{all[0].field}}), stored,
                              to_string(Schema{{field}})),
                  "bring them to one shape, or write their bytes as members of a tar archive",
                  {.file = path()});
    }
    fields.push_back(
        {.field = all[0].field, .storage = one_behind_the_other(all), .rows = samples.keys.size()});
  }
  return fields;
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
  for (const std::string& name : list_external_links(main_.opened.get())) {
    try {
      fields.push_back(read_chosen({.name = {}, .stored = name}));
    } catch (const Error& error) {
      if (error.kind() == ErrorKind::io) throw;
      note(fmt::format("left out: {}", error.happened()));
    }
  }
  if (!single.empty()) note("left out, as single values: " + some_of(single));
  return fields;
}

std::vector<FileField> FileReader::read(std::span<const FieldChoice> choices) {
  const auto has_star = [](const FieldChoice& choice) {
    return std::ranges::count(choice.stored, '*') == 1;
  };
  const bool stars = !choices.empty() && std::ranges::all_of(choices, has_star);
  std::vector<FileField> fields;
  std::vector<std::string> names;
  if (choices.empty() || stars) names = list_datasets(library_, main_.state, main_.opened.get());
  if (stars) {
    std::vector<std::string> patterns;
    for (const FieldChoice& choice : choices) patterns.push_back(choice.stored);
    return read_samples(match_samples(names, std::move(patterns)), choices);
  }
  for (const FieldChoice& choice : choices) fields.push_back(read_chosen(choice));
  if (choices.empty()) {
    const auto found = find_samples(names);
    if (found && are_samples(*found)) {
      note(
          fmt::format("each sample is taken to have data sets of its own: {} ({} samples); name "
                      "data sets whose rows are samples: FILE#NAME,NAME",
                      patterns_text(*found), found->keys.size()));
      if (!found->others.empty()) {
        note("left out, as they belong to no sample: " + some_of(found->others));
      }
      return read_samples(*found, {});
    }
    fields = read_all(names);
  }
  if (!fields.empty()) return fields;
  throw Error(ErrorKind::not_found, "the file holds no data set with samples",
              "give a file whose data sets have a first dimension", {.file = path()});
}

}  // namespace

bool is_hdf5(const File& file) {
  const std::uint64_t size = file.size();
  std::array<std::byte, kSignature.size()> bytes;
  for (std::uint64_t at = 0; size >= bytes.size() && at <= size - bytes.size();
       at = at == 0 ? 512 : at * 2) {
    file.read(at, bytes);
    const auto same = [](std::byte a, unsigned char b) {
      return std::to_integer<unsigned>(a) == b;
    };
    if (std::ranges::equal(bytes, kSignature, same)) return true;
  }
  return false;
}

std::unique_ptr<DataSet> open_hdf5(const std::string& text, DataFiles files,
                                   std::span<const FieldChoice> choices) {
  // What was chosen is opened under the names that were chosen.
  std::vector<std::string> notes;
  return open_fields(
      text, "hdf5", std::move(files), {},
      [&](const auto& file) { return FileReader(file, notes).read(choices); }, notes);
}

}  // namespace forebay::hdf5
