#include "format/user_cache.hpp"

#include <fmt/format.h>
#include <xxhash.h>

#include <cstdlib>
#include <filesystem>

#include "forebay/error.hpp"
#include "forebay/storage.hpp"
#include "storage/atomic_file.hpp"

namespace forebay {
namespace {

namespace fs = std::filesystem;

/// The absolute path in environment variable `name`.
std::optional<fs::path> folder_in(const char* name) {
  const char* text = std::getenv(name);
  if (text == nullptr || !fs::path(text).is_absolute()) return {};
  return fs::path(text);
}

}  // namespace

std::string hash_text(const std::string& text) {
  const XXH128_hash_t hash = XXH3_128bits(text.data(), text.size());
  return fmt::format("{:016x}{:016x}", hash.high64, hash.low64);
}

std::optional<std::string> user_cache_path(const std::string& identity) {
  std::optional<fs::path> cache = folder_in("XDG_CACHE_HOME");
  if (!cache) {
    if (const auto home = folder_in("HOME")) cache = *home / ".cache";
  }
  if (!cache) return {};
  return (*cache / "forebay" / (hash_text(identity) + ".forebay")).string();
}

std::vector<std::byte> read_small_file(const std::string& path, std::uint64_t most_bytes) {
  const auto file = open_file(path, Engine::pread);
  const std::uint64_t size = file->size();
  if (size > most_bytes) {
    throw Error(ErrorKind::corrupt, fmt::format("{} bytes are too many for a sidecar", size),
                "make it anew with 'forebay provenance'", {.file = path});
  }
  std::vector<std::byte> bytes(size);
  file->read(0, bytes);
  return bytes;
}

void write_whole_file(const std::string& path, std::span<const std::byte> bytes) {
  const fs::path folder = fs::path(path).parent_path();
  std::error_code error;
  if (!folder.empty()) fs::create_directories(folder, error);  // opening the file tells what failed
  AtomicFile file(path);
  file.write(bytes);
  file.commit();
}

}  // namespace forebay
