#include "storage/file_pool.hpp"

#include <algorithm>
#include <utility>

#include "forebay/error.hpp"
#include "storage/page_cache.hpp"

namespace forebay {

std::shared_ptr<const File> FilePool::open(const std::string& path) {
  const std::lock_guard lock(mutex_);
  const auto found = std::ranges::find_if(
      open_, [&](const std::shared_ptr<const File>& file) { return file->path() == path; });
  if (found != open_.end()) {
    open_.splice(open_.begin(), open_, found);
    return open_.front();
  }
  // First one is closed, then the next is opened: at the limit there is no descriptor to spare.
  if (open_.size() >= most_ && !open_.empty()) open_.pop_back();
  open_.push_front(open_file(path, Engine::pread));
  expect_reads(*open_.front(), Reads::forward);
  return open_.front();
}

PooledFile::PooledFile(std::string path, std::shared_ptr<FilePool> pool)
    : path_(std::move(path)), pool_(std::move(pool)) {
  const auto file = pool_->open(path_);
  at_first_ = file->fingerprint();
  has_descriptor_ = file->has_descriptors();
}

std::shared_ptr<const File> PooledFile::open() const {
  auto file = pool_->open(path_);
  const FileFingerprint now = file->fingerprint();
  if (now.device == at_first_.device && now.inode == at_first_.inode &&
      now.born_ns == at_first_.born_ns)
    return file;
  throw Error(ErrorKind::changed, "another file has taken the place of this one while it was open",
              "start again once nothing writes to the data set", {.file = path_});
}

}  // namespace forebay
