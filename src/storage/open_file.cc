#include "forebay/error.hpp"
#include "forebay/storage.hpp"
#include "storage/memory_url.hpp"
#include "storage/mmap_file.hpp"
#include "storage/plugin_registry.hpp"
#include "storage/pread_file.hpp"
#include "storage/url.hpp"

namespace forebay {
namespace {

std::shared_ptr<const File> open_on_file_system(const std::string& path, Engine engine) {
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

std::shared_ptr<const File> open_by_plugin(const Url& url, Engine engine) {
  auto file = plugin_for(url.scheme)->open(url.rest);
  if (engine != Engine::mmap) return file;
  throw Error(ErrorKind::unsupported, "the files of a storage plug-in cannot be mapped",
              "use '--engine pread'", Where{.file = file->path()});
}

}  // namespace

std::shared_ptr<const File> open_file(const std::string& path, Engine engine) {
  const auto url = parse_url(path);
  if (!url) return open_on_file_system(path, engine);
  if (url->scheme == "file") return open_on_file_system(url->rest, engine);
  if (url->scheme == "mem") return open_memory(url->rest);
  try {
    return open_by_plugin(*url, engine);
  } catch (const Error& error) {
    throw error.within({.file = path});
  }
}

}  // namespace forebay
