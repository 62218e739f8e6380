#include "format/registry.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>
#include <mutex>

#include "forebay/error.hpp"
#include "format/convention/convention_set.hpp"
#include "format/field_files.hpp"
#include "format/folder/folder.hpp"
#include "format/hdf5/open_hdf5.hpp"
#include "format/raw/open_raw.hpp"
#include "format/tar/tar.hpp"
#include "format/tfrecord/tfrecord.hpp"
#include "format/tokens/tokens.hpp"
#include "format/zip/zip.hpp"
#include "storage/file_pool.hpp"
#include "storage/storages.hpp"
#include "storage/url.hpp"

namespace forebay {
namespace {

/// Of the process, as plug-ins are: what was added stays.
struct Registry {
  std::mutex mutex;
  std::vector<Format> formats = {tokens::tokens_format(), hdf5::hdf5_format(),
                                 raw::npy_format(),       raw::cifar10_format(),
                                 raw::raw_format(),       tar::tar_format(),
                                 zip::zip_format(),       tfrecord::tfrecord_format(),
                                 folder::folder_format(), convention::lmdb_format()};
};

Registry& registry() {
  static Registry all;
  return all;
}

std::string format_of(const std::string& path, const FormatOptions& options) {
  FirstFile first{.path = without_file_scheme(path), .file = nullptr, .options = options};
  if (!std::filesystem::is_directory(first.path)) first.file = open_file(path, Engine::pread);
  const std::vector<Format> all = formats();
  for (const bool searches : {false, true}) {
    for (const Format& format : all) {
      if (format.searches == searches && format.recognise && format.recognise(first)) {
        return format.name;
      }
    }
  }
  refuse_unknown(first);
}

void check_schema(const DataSetFacts& facts, const std::string& declared) {
  // Values of any size are told by their codec.
  if (declared.empty() || facts.schema.fields.empty()) return;
  if (facts.schema == parse_schema(declared)) return;
  throw Error(ErrorKind::usage,
              fmt::format("samples are {} but {} was declared", to_string(facts.schema), declared),
              "correct --schema", {.file = facts.path});
}

/// Then the error about one of them says more than that there is no file of the whole name.
bool begins_a_list(const std::string& text) {
  const std::size_t end = text.find_first_of(",&");
  if (end == std::string::npos) return false;
  if (storage_has(text.substr(0, end))) return true;
  try {
    const std::vector<NamedFiles> sides = files_beside(text);
    return !sides.empty() && !find_files(sides[0].text).empty();
  } catch (const Error&) {
    return false;
  }
}

/// Data sets beside each other; each may be of another format than `format`, that of the first.
std::unique_ptr<DataSet> open_beside(const std::string& text, const Format& format,
                                     const FormatOptions& options, Peers& peers) {
  FormatOptions each = options;
  if (format.recognise) each.format = "auto";
  if (!format.takes_schema) each.schema.clear();
  std::vector<std::pair<std::string, std::unique_ptr<DataSet>>> sides;
  for (const NamedFiles& side : files_beside(text)) {
    sides.emplace_back(side.name, open_data_set(side.text, each, peers));
  }
  return join_fields(text, sides);
}

}  // namespace

DataFiles FormatRequest::open_files() const {
  // A process may have 1,024 files open by default, and has others.
  constexpr std::size_t kMostOpen = 128;
  DataFiles files;
  const bool pooled = found.files.size() > kMostOpen && options.engine != Engine::mmap;
  const auto pool = std::make_shared<FilePool>(kMostOpen);
  for (const std::string& path : found.files) {
    files.push_back(pooled ? std::make_shared<PooledFile>(path, pool)
                           : open_file(path, options.engine));
  }
  return files;
}

std::vector<Format> formats() {
  const std::scoped_lock lock(registry().mutex);
  return registry().formats;
}

void add_format(Format format) {
  const std::scoped_lock lock(registry().mutex);
  std::vector<Format>& all = registry().formats;
  if (std::ranges::find(all, format.name, &Format::name) != all.end()) {
    throw Error(ErrorKind::usage, fmt::format("there is a format '{}' already", format.name));
  }
  all.insert(all.begin(), std::move(format));
}

std::string format_names() {
  std::vector<std::string> names;
  for (const Format& format : formats()) names.push_back(format.name);
  return fmt::format("{}", fmt::join(names, ", "));
}

Format find_format(const std::string& name, const std::string& text) {
  for (Format& format : formats()) {
    if (format.name == name) return std::move(format);
  }
  throw Error(ErrorKind::usage, fmt::format("'{}' is not a format", name),
              fmt::format("use one of auto, {}", format_names()), {.file = text});
}

std::string recognise_files(const std::string& text, const FormatOptions& options) {
  std::string first;
  try {
    first = find_files(text).front();
  } catch (const Error& error) {
    // Whoever opens it as something else says better what is wrong.
    if (error.kind() == ErrorKind::io || begins_a_list(text)) throw;
    return formats().back().name;
  }
  return format_of(first, options);
}

bool are_local_files(const std::string& text) {
  try {
    return is_on_local_disk(find_files(text).front());
  } catch (const Error&) {
    return true;  // whoever opens it says what is wrong
  }
}

std::unique_ptr<DataSet> open_data_set(const std::string& text, const FormatOptions& options,
                                       Peers& peers) {
  DatasetFiles found;
  Format format;
  bool beside = false;
  peers.together([&] {
    format = find_format(options.format == "auto" ? recognise_files(text, options) : options.format,
                         text);
    if (format.names_itself) return;
    beside = !files_beside(text).empty();
    if (!beside) found = find_dataset_files(text);
  });
  auto data =
      beside ? open_beside(text, format, options, peers)
             : format.open(
                   {.text = text, .found = std::move(found), .options = options, .peers = peers});
  if (!format.takes_schema) check_schema(data->facts(), options.schema);
  return data;
}

}  // namespace forebay
