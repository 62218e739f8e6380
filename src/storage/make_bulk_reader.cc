#include <utility>

#include "forebay/error.hpp"
#include "storage/bulk_reader.hpp"
#include "storage/mmap_bulk_reader.hpp"
#include "storage/page_cache.hpp"
#include "storage/pread_bulk_reader.hpp"
#include "storage/uring_bulk_reader.hpp"

namespace forebay {

std::unique_ptr<BulkReader> make_bulk_reader(std::shared_ptr<const File> file, Engine engine,
                                             const BulkOptions& options) {
  expect_reads(*file, options.scattered ? Reads::scattered : Reads::forward);
  switch (engine) {
    case Engine::mmap:
      return std::make_unique<MmapBulkReader>(std::move(file));
    case Engine::pread:
      return std::make_unique<PreadBulkReader>(std::move(file), options);
    case Engine::uring:
      return make_uring_reader(std::move(file), options);
  }
  throw Error(ErrorKind::usage, "unknown engine", "choose mmap, pread or uring",
              Where{.file = file->path()});
}

}  // namespace forebay
