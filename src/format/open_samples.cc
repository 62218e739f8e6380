#include "format/open_samples.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <filesystem>

#include "forebay/error.hpp"
#include "format/dataset_files.hpp"
#include "format/hdf5/open_hdf5.hpp"
#include "format/raw/npy_header.hpp"
#include "format/raw/open_npy.hpp"
#include "format/raw/open_raw.hpp"
#include "storage/file_pool.hpp"
#include "storage/url.hpp"

namespace forebay {
namespace {

std::string format_of(const std::string& path) {
  if (std::filesystem::is_directory(without_file_scheme(path))) return {};
  const auto file = open_file(path, Engine::pread);
  std::array<std::byte, raw::kNpyPreambleBytes> start{};
  const auto known = std::span(start).first(std::min<std::uint64_t>(start.size(), file->size()));
  file->read(0, known);
  if (raw::is_npy(known)) return "npy";
  if (hdf5::is_hdf5(*file)) return "hdf5";
  if (raw::is_cifar10(*file)) return "cifar10";
  return {};
}

std::string recognized(const std::string& path) {
  const std::string format = format_of(path);
  if (!format.empty()) return format;
  throw Error(ErrorKind::unsupported, "this is neither HDF5, .npy nor CIFAR-10's binary version",
              "for records of one size say --format raw and their --schema", {.file = path});
}

void check_schema(const SampleSource& source, const std::string& declared) {
  if (declared.empty() || source.schema() == parse_schema(declared)) return;
  throw Error(
      ErrorKind::usage,
      fmt::format("samples are {} but {} was declared", to_string(source.schema()), declared),
      "correct --schema", {.file = source.path()});
}

// A process may have 1,024 files open by default, and has others.
constexpr std::size_t kMostOpen = 128;

SampleFiles open_all(const std::vector<std::string>& paths, Engine engine) {
  SampleFiles files;
  const bool pooled = paths.size() > kMostOpen && engine != Engine::mmap;
  const auto pool = std::make_shared<FilePool>(kMostOpen);
  for (const std::string& path : paths) {
    files.push_back(pooled ? std::make_shared<PooledFile>(path, pool) : open_file(path, engine));
  }
  return files;
}

std::unique_ptr<SampleSource> open_as(const std::string& format, const std::string& text,
                                      const DatasetFiles& found, const SampleOptions& options) {
  SampleFiles files = open_all(found.files, options.engine);
  if (format == "hdf5") return hdf5::open_hdf5(text, std::move(files), found.fields);
  if (format == "npy") return raw::open_npy(text, std::move(files), found.fields);
  if (format == "cifar10") {
    return raw::open_raw(text, std::move(files), found.fields, format, raw::cifar10_layout());
  }
  if (format == "raw") {
    return raw::open_raw(text, std::move(files), found.fields, format,
                         {.schema = options.schema,
                          .header_bytes = options.header_bytes,
                          .record_bytes = options.record_bytes,
                          .big_endian = options.big_endian});
  }
  throw Error(ErrorKind::usage, fmt::format("'{}' is not a format", format),
              "use one of auto, hdf5, npy, cifar10, raw", {.file = text});
}

/// Then the error about one of them says more than that there is no file of the whole name.
bool begins_a_list(const std::string& text) {
  const std::size_t comma = text.find(',');
  return comma != std::string::npos && storage_has(text.substr(0, comma));
}

}  // namespace

std::string recognize_samples(const std::string& text) {
  try {
    return format_of(find_files(text).front());
  } catch (const Error& error) {
    // Whoever opens it as something else says better what is wrong.
    if (error.kind() == ErrorKind::io || begins_a_list(text)) throw;
    return {};
  }
}

std::unique_ptr<SampleSource> open_samples(const std::string& text, const SampleOptions& options) {
  const DatasetFiles files = find_dataset_files(text);
  const std::string format =
      options.format == "auto" ? recognized(files.files.front()) : options.format;
  auto source = open_as(format, text, files, options);
  if (format != "raw") check_schema(*source, options.schema);
  return source;
}

}  // namespace forebay
