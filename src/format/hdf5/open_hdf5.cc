#include "format/hdf5/open_hdf5.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>

#include "format/field_files.hpp"
#include "format/hdf5/dataset.hpp"

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
  if (names.empty()) return "it has none";
  std::vector<std::string> shown;
  for (const std::string& name : names.first(std::min(names.size(), kMostNames))) {
    shown.push_back(shown_name(name));
  }
  if (names.size() > kMostNames) shown.push_back(fmt::format("{} more", names.size() - kMostNames));
  return fmt::format("it has {}", fmt::join(shown, ", "));
}

bool is_external_link(hid_t file, const std::string& path) {
  H5L_info_t info{};
  return H5Lget_info(file, path.c_str(), &info, H5P_DEFAULT) >= 0 && info.type == H5L_TYPE_EXTERNAL;
}

Error cannot_open(const Library& library, const DriverState& state, hid_t file,
                  const std::string& path) {
  if (state.failure) return *state.failure;
  const std::string reason = library.last_error();
  const Where where{.file = state.file->path()};
  if (is_external_link(file, path)) {
    return {ErrorKind::unsupported, fmt::format("'{}' is a link to another file", path),
            "name that file instead", where};
  }
  const auto names = list_datasets(library, state, file);
  if (std::ranges::find(names, path) != names.end()) {
    return {ErrorKind::corrupt, fmt::format("data set '{}' cannot be opened: {}", path, reason),
            "the file is damaged: restore it from a copy", where};
  }
  return {ErrorKind::not_found, fmt::format("there is no data set '{}'; {}", path, some_of(names)),
          "correct the name after the '#'", where};
}

/// The fields of one file; `choices` empty: all.
std::vector<Dataset> read_file(const std::shared_ptr<const File>& file,
                               std::span<const FieldChoice> choices) {
  const Library library;
  DriverState state{.file = file, .size = 0, .wanted = {}, .failure = {}, .window = {}};
  const DriverFile opened(library, state);
  std::vector<FieldChoice> wanted(choices.begin(), choices.end());
  if (choices.empty()) {
    for (std::string& name : list_datasets(library, state, opened.get())) {
      wanted.push_back({.name = {}, .stored = std::move(name)});
    }
  }
  std::vector<Dataset> fields;
  for (const FieldChoice& choice : wanted) {
    const Id id(H5Dopen2(opened.get(), choice.stored.c_str(), H5P_DEFAULT), H5Dclose);
    if (!id.valid()) throw cannot_open(library, state, opened.get(), choice.stored);
    if (choices.empty() && !has_rows(id.get())) continue;
    fields.push_back(read_dataset(library, state, id.get(), choice.stored));
    if (!choice.name.empty()) fields.back().field.name = choice.name;
  }
  if (fields.empty()) {
    throw Error(ErrorKind::not_found, "the file holds no data set with samples",
                "give a file whose data sets have a first dimension", {.file = file->path()});
  }
  return fields;
}

void check_rows(std::span<const Dataset> fields, const std::string& path) {
  for (const Dataset& field : fields) {
    if (field.rows == fields[0].rows) continue;
    throw Error(
        ErrorKind::usage,
        fmt::format("data set '{}' has {} rows but '{}' has {}", shown_name(fields[0].stored),
                    fields[0].rows, shown_name(field.stored), field.rows),
        "name those that belong together: FILE#x=NAME,y=NAME", {.file = path});
  }
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
  return open_fields(text, "hdf5", std::move(files), {}, [&](const auto& file) {
    auto fields = read_file(file, choices);
    check_rows(fields, file->path());
    FileFields found{.rows = fields[0].rows, .fields = {}};
    for (Dataset& field : fields) {
      found.fields.push_back({std::move(field.field), std::move(field.storage)});
    }
    return found;
  });
}

}  // namespace forebay::hdf5
