// What plain paths and "file://" name: files of the operating system.
#include <fmt/format.h>

#include <filesystem>
#include <system_error>

#include "forebay/error.hpp"
#include "storage/mmap_file.hpp"
#include "storage/pread_file.hpp"

namespace forebay {
namespace {

std::shared_ptr<const File> open_on_disk(const std::string& path, Engine engine) {
  switch (engine) {
    case Engine::mmap:
      return std::make_shared<MmapFile>(path);
    case Engine::pread:
    case Engine::uring:
      return std::make_shared<PreadFile>(path);
  }
  throw Error(ErrorKind::usage, "unknown engine", "choose mmap, pread or uring",
              Where{.file = path});
}

bool is_on_disk(const std::string& path) {
  std::error_code error;
  const bool found = std::filesystem::exists(path, error);
  if (error && error != std::errc::no_such_file_or_directory &&
      error != std::errc::not_a_directory && error != std::errc::filename_too_long) {
    throw Error(ErrorKind::io, fmt::format("cannot look at the path: {}", error.message()),
                "check its permissions", {.file = path});
  }
  return found;
}

}  // namespace

Storage disk_storage() {
  return {.scheme = "file",
          .description = "files of the operating system",
          .open = open_on_disk,
          .has = is_on_disk,
          .maps = true};
}

}  // namespace forebay
