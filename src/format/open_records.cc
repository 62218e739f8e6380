#include "format/lmdb/baseline_source.hpp"
#include "format/lmdb/lmdb_source.hpp"
#include "format/record_source.hpp"

namespace forebay {

std::unique_ptr<RecordSource> open_records(const std::string& path, SourceEngine engine) {
  switch (engine) {
    case SourceEngine::liblmdb:
      return std::make_unique<lmdb::BaselineSource>(path);
    case SourceEngine::mmap:
      return std::make_unique<lmdb::LmdbSource>(lmdb::Database::open(path, Engine::mmap));
    case SourceEngine::pread:
      return std::make_unique<lmdb::LmdbSource>(lmdb::Database::open(path, Engine::pread));
  }
  throw Error(ErrorKind::usage, "unknown engine", "choose liblmdb, mmap or pread", {.file = path});
}

}  // namespace forebay
