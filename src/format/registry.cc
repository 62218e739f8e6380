#include "format/registry.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>
#include <mutex>

#include "forebay/error.hpp"
#include "format/convention/convention_set.hpp"
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
  for (const Format& format : formats()) {
    if (format.recognise && format.recognise(first)) return format.name;
  }
  return {};
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
  const std::size_t comma = text.find(',');
  return comma != std::string::npos && storage_has(text.substr(0, comma));
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
  try {
    return format_of(find_files(text).front(), options);
  } catch (const Error& error) {
    // Whoever opens it as something else says better what is wrong.
    const bool known = error.kind() == ErrorKind::unsupported;
    if (error.kind() == ErrorKind::io || known || begins_a_list(text)) throw;
    return formats().back().name;
  }
}

std::unique_ptr<DataSet> open_data_set(const std::string& text, const FormatOptions& options,
                                       Peers& peers) {
  DatasetFiles found;
  Format format;
  peers.together([&] {
    format = find_format(options.format == "auto" ? recognise_files(text, options) : options.format,
                         text);
    if (!format.names_itself) found = find_dataset_files(text);
  });
  auto data =
      format.open({.text = text, .found = std::move(found), .options = options, .peers = peers});
  if (!format.takes_schema) check_schema(data->facts(), options.schema);
  return data;
}

}  // namespace forebay
