#include "format/lmdb/provenance/sidecar_file.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "forebay/error.hpp"
#include "forebay/log.hpp"
#include "format/user_cache.hpp"

namespace forebay::lmdb {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kMostNameBytes = 100;

/// `name` as part of a file name that no other name shares.
std::string escaped(const std::string& name) {
  std::string text;
  for (const char c : name) {
    const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                       c == '-' || c == '_';
    text += plain ? std::string(1, c) : fmt::format("%{:02X}", static_cast<unsigned char>(c));
  }
  return text.size() <= kMostNameBytes ? text : hash_text(name);
}

std::optional<FoundSidecar> try_read(const std::string& path, std::uint64_t most_bytes) {
  std::error_code error;
  if (!fs::exists(path, error)) return {};
  try {
    return FoundSidecar{.path = path, .bytes = read_sidecar_file(path, most_bytes)};
  } catch (const Error& problem) {
    log_message(LogLevel::warning, fmt::format("{} is not used: {}", path, problem.what()));
    return {};
  }
}

}  // namespace

std::string sidecar_path(const DatasetPath& dataset) {
  if (dataset.foreign) return {};
  if (dataset.name.empty()) return dataset.data_file + ".forebay";
  return fmt::format("{}.{}.forebay", dataset.data_file, escaped(dataset.name));
}

std::optional<std::string> cached_sidecar_path(const std::string& fingerprint) {
  return user_cache_path(fingerprint);
}

std::vector<FoundSidecar> find_sidecars(const DatasetPath& dataset, const std::string& fingerprint,
                                        std::uint64_t most_bytes) {
  std::vector<std::string> paths;
  if (auto beside = sidecar_path(dataset); !beside.empty()) paths.push_back(std::move(beside));
  if (auto cached = cached_sidecar_path(fingerprint)) paths.push_back(std::move(*cached));
  std::vector<FoundSidecar> found;
  for (const std::string& path : paths) {
    if (auto one = try_read(path, most_bytes)) found.push_back(std::move(*one));
  }
  return found;
}

std::vector<std::byte> read_sidecar_file(const std::string& path, std::uint64_t most_bytes) {
  return read_small_file(path, most_bytes);
}

std::uint64_t most_sidecar_bytes(std::uint64_t entries, std::uint64_t leaf_pages) {
  constexpr std::uint64_t kMost = std::uint64_t{1} << 40;  // keeps the products small
  return (std::uint64_t{1} << 20) + 32 * std::min(entries, kMost) +
         64 * std::min(leaf_pages, kMost);
}

void write_sidecar(const std::string& path, std::span<const std::byte> bytes) {
  write_whole_file(path, bytes);
}

}  // namespace forebay::lmdb
