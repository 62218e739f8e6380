#include "storage/bulk_reader.hpp"

#include <fmt/format.h>

#include <atomic>
#include <cerrno>
#include <utility>

#include "core/copy_values.hpp"
#include "core/read_watch.hpp"
#include "forebay/error.hpp"
#include "forebay/log.hpp"
#include "storage/file_error.hpp"
#include "storage/joined_file.hpp"
#include "storage/page_cache.hpp"
#include "storage/request_splitter.hpp"
#include "storage/uring_bulk_reader.hpp"

namespace forebay {

std::unique_ptr<BulkReader> make_pread_reader(std::shared_ptr<const File> file,
                                              const BulkOptions& options);

namespace {

thread_local bool left_requests = false;

// Bulk reads as copies out of File::map(), one after another.
//
// The guard of the mapping turns a page that the device cannot supply into zeros and a record of
// the fault, so each copy is checked before `done` hears of it. Bytes past the mapping (the file
// has grown since it was opened) are read explicitly.

class MmapBulkReader final : public BulkReader {
 public:
  /// Throws unsupported for a file that is not mapped.
  explicit MmapBulkReader(std::shared_ptr<const File> file);

  /// Only notes what to copy: this engine does everything in the calling thread.
  void start(std::span<const ReadRequest> requests) override;
  void finish(const Done& done) override;
  void cancel() noexcept override { requests_ = {}; }
  BulkCounters counters() const override { return counters_; }
  bool abandoned() const override { return false; }
  std::string describe() const override { return "mmap, copied one after another"; }

 private:
  void copy(const ReadRequest& request);

  std::shared_ptr<const File> file_;
  std::span<const ReadRequest> requests_;
  BulkCounters counters_;
};

MmapBulkReader::MmapBulkReader(std::shared_ptr<const File> file) : file_(std::move(file)) {
  if (file_->is_mapped()) return;
  throw Error(ErrorKind::unsupported, "this file was opened without a mapping",
              "open it with '--engine mmap', or read it by '--engine pread'",
              Where{.file = file_->path()});
}

void MmapBulkReader::start(std::span<const ReadRequest> requests) {
  require_possible(requests, *file_);
  requests_ = requests;
}

void MmapBulkReader::finish(const Done& done) {
  const auto requests = std::exchange(requests_, {});
  for (std::size_t i = 0; i < requests.size(); ++i) {
    copy(requests[i]);
    done(i);
  }
}

void MmapBulkReader::copy(const ReadRequest& request) {
  const auto [file, offset] = resolve(file_, request.offset);
  const auto mapped = file->map();
  const std::uint64_t end = offset + request.into.size();
  if (end > mapped.size()) {
    file->read(offset, request.into);
  } else {
    note_mapped(mapped.data() + offset);
    copy_values(mapped.subspan(offset, request.into.size()), request.into);
    file->check();
    // A cut inside a page does not fault: the rest of that page reads as zeros.
    const std::uint64_t size = file->size();
    if (end > size) throw end_of_file_error(file->path(), offset, request.into.size(), size);
  }
  ++counters_.requests;
  counters_.bytes += request.into.size();
}

void say_once(const std::string& refusal) {
  static std::atomic<bool> said = false;
  if (!said.exchange(true)) log_message(LogLevel::info, refusal + "; reading by pread instead");
}

}  // namespace

std::string uring_refusal(int error) {
  const char* why = "the kernel refused a ring";
  if (error == ENOSYS) why = "kernel older than 5.6, or built without it";
  if (error == EPERM) why = "forbidden by kernel.io_uring_disabled or by a container";
  if (error == ENOMEM) why = "locked memory is used up: raise 'ulimit -l'";
  if (error == EMFILE) why = "it takes a file: raise 'ulimit -n'";
  return fmt::format("io_uring is not available ({}: {})", errno_text(error), why);
}

EngineChoice choose_engine(const File& file, bool scattered, const UringProbe& probe) {
  if (file.descriptor() < 0) return {Engine::pread, "the bytes are not on a file system"};
  const std::string system = file_system_name(file.descriptor());
  const bool local = file.is_local();
  const bool deep = scattered && system != "tmpfs";
  if (local && !deep) return {Engine::pread, fmt::format("{} is local", system)};
  if (const int error = probe(); error != 0) {
    const std::string refusal = uring_refusal(error);
    say_once(refusal);
    return {Engine::pread, refusal};
  }
  if (local) return {Engine::uring, fmt::format("{} is local, reads are scattered", system)};
  return {Engine::uring, fmt::format("io_uring is available, file system {}", system)};
}

EngineChoice choose_engine(const File& file, bool scattered) {
  return choose_engine(file, scattered, probe_uring);
}

bool left_requests_here() noexcept { return left_requests; }
void note_left_requests() noexcept { left_requests = true; }

std::unique_ptr<BulkReader> make_bulk_reader(std::shared_ptr<const File> file, Engine engine,
                                             const BulkOptions& options) {
  expect_reads(*file, options.scattered || options.apart ? Reads::scattered : Reads::forward);
  switch (engine) {
    case Engine::mmap:
      return std::make_unique<MmapBulkReader>(std::move(file));
    case Engine::pread:
      return make_pread_reader(std::move(file), options);
    case Engine::uring:
      return make_uring_reader(std::move(file), options);
  }
  throw Error(ErrorKind::usage, "unknown engine", "choose mmap, pread or uring",
              Where{.file = file->path()});
}

}  // namespace forebay
