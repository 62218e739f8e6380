#include "read/mpiio_reader.hpp"

#include <fmt/format.h>

#include <thread>
#include <utility>
#include <vector>

#include "core/clock.hpp"
#include "forebay/error.hpp"
#include "storage/file_error.hpp"
#include "storage/request_splitter.hpp"

namespace forebay {
namespace {

// Whoever has failed publishes that much faster; without a failure another root has ended.
constexpr double kLongestNews = 3;

/// A file that is read by MPI's calls, and is otherwise the one of the operating system.
class IndependentFile final : public File {
 public:
  IndependentFile(std::shared_ptr<const File> file, std::unique_ptr<CommonFile> common)
      : file_(std::move(file)), common_(std::move(common)) {}

  const std::string& path() const override { return file_->path(); }
  std::uint64_t size() const override { return file_->size(); }
  std::span<const std::byte> map() const override { return {}; }
  void check() const override { file_->check(); }
  FileFingerprint fingerprint() const override { return file_->fingerprint(); }
  FileCounters counters() const override { return file_->counters(); }

  void read(std::uint64_t offset, std::span<std::byte> out) const override {
    const std::uint64_t filled = common_->read(offset, out);
    if (filled == out.size()) return;
    throw end_of_file_error(path(), offset, out.size(), offset + filled);
  }

 private:
  std::shared_ptr<const File> file_;
  std::unique_ptr<CommonFile> common_;
};

/// The same reader, told as what it is.
class IndependentReader final : public BulkReader {
 public:
  IndependentReader(std::unique_ptr<BulkReader> inner, std::string by)
      : inner_(std::move(inner)), by_(std::move(by)) {}

  void start(std::span<const ReadRequest> requests) override { inner_->start(requests); }
  void finish(const Done& done) override { inner_->finish(done); }
  void advance() override { inner_->advance(); }
  void cancel() noexcept override { inner_->cancel(); }
  BulkCounters counters() const override { return inner_->counters(); }
  bool abandoned() const override { return inner_->abandoned(); }
  std::string describe() const override {
    return fmt::format("mpiio, each root by itself ({}, as {})", by_, inner_->describe());
  }

 private:
  std::unique_ptr<BulkReader> inner_;
  std::string by_;
};

}  // namespace

std::unique_ptr<BulkReader> make_independent_reader(Communicator& alone,
                                                    std::shared_ptr<const File> file,
                                                    const BulkOptions& options) {
  auto common = alone.open_together(file->path());
  std::string by = common->describe();
  auto through_mpi = std::make_shared<IndependentFile>(std::move(file), std::move(common));
  return std::make_unique<IndependentReader>(
      make_bulk_reader(std::move(through_mpi), Engine::pread, options), std::move(by));
}

CollectiveReader::CollectiveReader(std::shared_ptr<const File> file,
                                   std::unique_ptr<CommonFile> common,
                                   std::shared_ptr<CommonSteps> steps, GiveUp give_up)
    : file_(std::move(file)),
      common_(std::move(common)),
      steps_(std::move(steps)),
      give_up_(std::move(give_up)) {}

void CollectiveReader::start(std::span<const ReadRequest> requests) {
  require_possible(requests, *file_);
  requests_ = requests;
}

void CollectiveReader::finish(const Done& done) {
  const auto requests = std::exchange(requests_, {});
  meet_others();
  try {
    read_with_others(requests);
  } catch (...) {
    steps_->leave();
    throw;
  }
  meet_others();
  for (std::size_t i = 0; i < requests.size(); ++i) done(i);
}

// That the step is not taken is a consequence: the cause, a failure of another root, is worth
// waiting for.
void CollectiveReader::meet_others() {
  if (steps_->meet(give_up_)) return;
  const double begin = now_seconds();
  while (!give_up_() && now_seconds() - begin < kLongestNews) {
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  throw Error(ErrorKind::cancelled,
              "another root has ended, without which nothing is read together",
              "let all ranks take the same number of batches, or use --mpiio independent",
              {.file = file_->path()});
}

void CollectiveReader::read_with_others(std::span<const ReadRequest> requests) {
  std::vector<FilePiece> pieces;
  std::uint64_t bytes = 0;
  for (const ReadRequest& request : requests) {
    pieces.push_back({.offset = request.offset, .into = request.into});
    bytes += request.into.size();
  }
  common_->read_all(pieces);
  ++counters_.requests;
  counters_.bytes += bytes;
  // MPI fills in nothing behind the end of the file, and does not say so.
  const std::uint64_t size = file_->size();
  for (const ReadRequest& request : requests) {
    const std::uint64_t count = request.into.size();
    if (request.offset + count > size) {
      throw end_of_file_error(file_->path(), request.offset, count, size);
    }
  }
}

std::string CollectiveReader::describe() const {
  return fmt::format("mpiio, all roots at once ({})", common_->describe());
}

}  // namespace forebay
