#include "forebay/error.hpp"
#include "forebay/storage.hpp"
#include "storage/mmap_file.hpp"
#include "storage/pread_file.hpp"

namespace forebay {

std::shared_ptr<const File> open_file(const std::string& path, Engine engine) {
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

}  // namespace forebay
