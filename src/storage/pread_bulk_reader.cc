// Bulk reads by File::read(), hence over any File: on disk, in memory, failing on demand.
//
// One read at a time happens in the calling thread, all of it in finish(). More, or a reader that
// must be able to give up, take helper threads (fb-io-0, fb-io-1, ...), which live as long as the
// reader and sleep between calls; `done` is always called in the calling thread.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <exception>
#include <memory>
#include <mutex>
#include <stop_token>
#include <utility>
#include <vector>

#include "core/clock.hpp"
#include "core/placement.hpp"
#include "storage/bulk_reader.hpp"
#include "storage/file_error.hpp"
#include "storage/joined_file.hpp"
#include "storage/request_splitter.hpp"
#include "storage/stripes.hpp"

namespace forebay {
namespace {

// A wait looks this often how long it has been.
constexpr std::chrono::milliseconds kSlice{100};

// The threads behind the pread engine, and what they share with the one that waits for them.
//
//   caller:  begin(requests) -> next_finished() ... next_finished() -> empty: all are complete
//   thread:  takes the next piece, reads it, reports it, until there are none
//
// The state is owned jointly: a thread that is stuck in a read which never returns keeps its share
// (and the file) alive for as long as it takes, while the caller has long given up.

/// Thread-safe: work() by any number of threads, the rest by one caller.
class ReadCrew {
 public:
  /// Keeps `timeout` and `stop` of `options`.
  ReadCrew(std::shared_ptr<const File> file, const BulkOptions& options);

  /// The life of one thread: returns after `stop`.
  void work(const std::stop_token& stop);

  /// Offers the pieces of `requests`, which must stay until end().
  void begin(std::span<const ReadRequest> requests, std::uint64_t piece_bytes);
  /// Waits for the next finished requests; none means that all are. Throws what a read threw, io
  /// after the timeout, cancelled after a stop.
  std::vector<std::size_t> next_finished();
  /// Withdraws the pieces that nobody has taken and waits for the others. False when one of them
  /// gets no answer: its thread may never come back.
  bool end() noexcept;
  /// Throws what the first piece, in the order they are handed out, that failed did: after end(),
  /// when all that were taken are known, this does not depend on which thread was faster.
  void rethrow_error() const;

  BulkCounters counters() const;

 private:
  void finish(const ReadPiece& piece, std::exception_ptr error);

  const std::shared_ptr<const File> file_;
  const BulkOptions options_;

  mutable std::mutex mutex_;
  std::condition_variable_any work_;
  std::condition_variable_any answers_;
  // All below is guarded by mutex_.
  RequestSplitter pieces_;
  std::vector<std::uint64_t> missing_;  // bytes, by request
  std::size_t unfinished_ = 0;          // requests
  std::vector<std::size_t> finished_;   // requests that the caller has not heard of
  std::vector<ReadPiece> in_flight_;
  WaitedTime waited_;                   // since the last answer, or begin()
  std::chrono::milliseconds patience_;  // of end()
  std::exception_ptr error_;            // of failed_
  ReadPiece failed_;                    // the first of them that failed
  BulkCounters counters_;
};

bool comes_before(const ReadPiece& one, const ReadPiece& other) {
  return std::pair(one.request, one.offset) < std::pair(other.request, other.offset);
}

ReadCrew::ReadCrew(std::shared_ptr<const File> file, const BulkOptions& options)
    : file_(std::move(file)), options_(options), patience_(options.timeout) {}

void ReadCrew::work(const std::stop_token& stop) {
  std::unique_lock lock(mutex_);
  while (work_.wait(lock, stop, [this] { return !pieces_.empty(); })) {
    const ReadPiece piece = pieces_.next();
    in_flight_.push_back(piece);
    lock.unlock();
    std::exception_ptr error;
    try {
      file_->read(piece.offset, piece.into);
    } catch (...) {
      error = std::current_exception();
    }
    lock.lock();
    finish(piece, std::move(error));
  }
}

void ReadCrew::begin(std::span<const ReadRequest> requests, std::uint64_t piece_bytes) {
  const std::lock_guard lock(mutex_);
  missing_.clear();
  finished_.clear();
  error_ = nullptr;
  for (std::size_t i = 0; i < requests.size(); ++i) {
    missing_.push_back(requests[i].into.size());
    if (requests[i].into.empty()) finished_.push_back(i);
  }
  unfinished_ = requests.size() - finished_.size();
  pieces_ = RequestSplitter(requests, piece_bytes, {}, file_.get());
  patience_ = options_.timeout;
  waited_ = WaitedTime();
  work_.notify_all();
}

std::vector<std::size_t> ReadCrew::next_finished() {
  std::unique_lock lock(mutex_);
  while (true) {
    if (error_) std::rethrow_exception(error_);
    if (options_.stop.stop_requested()) throw stopped_error(file_->path());
    if (!finished_.empty() || unfinished_ == 0) return std::exchange(finished_, {});
    const auto news = [this] { return error_ || !finished_.empty(); };
    if (options_.timeout.count() == 0) {
      answers_.wait(lock, options_.stop, news);
      continue;
    }
    // Any answer, not only the one that completes a request, shows that the file system lives.
    if (answers_.wait_for(lock, options_.stop, kSlice, news)) continue;
    waited_.step();
    if (waited_.total() >= options_.timeout && !options_.stop.stop_requested()) {
      patience_ = std::min(patience_, kCancelGrace);
      const FilePlace place = resolve(file_, in_flight_.empty() ? 0 : in_flight_.front().offset);
      throw no_answer_error(place.file->path(), place.offset, options_.timeout);
    }
  }
}

bool ReadCrew::end() noexcept {
  std::unique_lock lock(mutex_);
  pieces_ = {};
  const auto quiet = [this] { return in_flight_.empty(); };
  if (options_.timeout.count() > 0) {
    WaitedTime waited;
    while (!options_.stop.stop_requested() && waited.total() < patience_ &&
           !answers_.wait_for(lock, options_.stop, std::min(patience_, kSlice), quiet)) {
      waited.step();
    }
  } else {
    answers_.wait(lock, options_.stop, quiet);
  }
  // A stop ends the waits above at once, so what is in flight still has its grace.
  return quiet() || (options_.stop.stop_requested() && answers_.wait_for(lock, kStopGrace, quiet));
}

void ReadCrew::rethrow_error() const {
  const std::lock_guard lock(mutex_);
  if (error_) std::rethrow_exception(error_);
}

BulkCounters ReadCrew::counters() const {
  const std::lock_guard lock(mutex_);
  return counters_;
}

void ReadCrew::finish(const ReadPiece& piece, std::exception_ptr error) {
  in_flight_.erase(std::ranges::find_if(in_flight_, [&](const ReadPiece& other) {
    return other.request == piece.request && other.offset == piece.offset;
  }));
  waited_ = WaitedTime();
  ++counters_.requests;
  if (error) {
    pieces_ = {};
    if (!error_ || comes_before(piece, failed_)) {
      error_ = std::move(error);
      failed_ = piece;
    }
  } else {
    counters_.bytes += piece.into.size();
    missing_[piece.request] -= piece.into.size();
    if (missing_[piece.request] == 0) {
      finished_.push_back(piece.request);
      --unfinished_;
    }
  }
  // The caller is woken for what it waits for: requests, or in the end the last read in flight.
  if (error_ || !finished_.empty() || in_flight_.empty()) answers_.notify_one();
}

// See docs/results/engines.md.
constexpr unsigned kDefaultDepth = 4;
constexpr unsigned kScatteredDepth = 16;
constexpr unsigned kMaxDepth = 256;
constexpr std::uint64_t kDefaultPiece = std::uint64_t{1} << 20;

bool may_give_up(const BulkOptions& options) {
  return options.timeout.count() > 0 || options.stop.stop_possible();
}

unsigned depth_of(const BulkOptions& options) {
  if (options.depth == 0) return options.scattered ? kScatteredDepth : kDefaultDepth;
  return std::min(options.depth, kMaxDepth);
}

class PreadBulkReader final : public BulkReader {
 public:
  PreadBulkReader(std::shared_ptr<const File> file, const BulkOptions& options);
  ~PreadBulkReader() override;

  void start(std::span<const ReadRequest> requests) override;
  void finish(const Done& done) override;
  void cancel() noexcept override;
  BulkCounters counters() const override;
  bool abandoned() const override { return abandoned_; }
  std::string describe() const override;

 private:
  void read_here(const Done& done);
  std::vector<std::size_t> next_finished();

  std::shared_ptr<const File> file_;
  unsigned depth_;
  std::uint64_t piece_bytes_;
  std::span<const ReadRequest> started_;
  BulkCounters counters_;  // of reads in the calling thread
  bool abandoned_ = false;
  std::shared_ptr<ReadCrew> crew_;
  std::vector<HelperThread> threads_;
};

PreadBulkReader::PreadBulkReader(std::shared_ptr<const File> file, const BulkOptions& options)
    : file_(std::move(file)),
      depth_(depth_of(options)),
      piece_bytes_(options.request_bytes == 0 ? request_bytes_for(*file_, kDefaultPiece)
                                              : options.request_bytes) {
  if (depth_ == 1 && !may_give_up(options)) return;
  crew_ = std::make_shared<ReadCrew>(file_, options);
  for (unsigned i = 0; i < depth_; ++i) {
    threads_.emplace_back(fmt::format("fb-io-{}", i), options.placement,
                          [crew = crew_](const std::stop_token& stop) { crew->work(stop); });
  }
}

PreadBulkReader::~PreadBulkReader() {
  cancel();
  if (!abandoned_) return;
  for (HelperThread& thread : threads_) thread.abandon();
}

void PreadBulkReader::start(std::span<const ReadRequest> requests) {
  if (abandoned_) throw abandoned_error(file_->path());
  require_possible(requests, *file_);
  started_ = requests;
  if (crew_) crew_->begin(requests, piece_bytes_);
}

void PreadBulkReader::finish(const Done& done) {
  if (!crew_) return read_here(done);
  try {
    while (!started_.empty()) {
      const auto finished = next_finished();
      if (finished.empty()) break;
      for (const std::size_t index : finished) done(index);
    }
    started_ = {};
  } catch (...) {
    cancel();
    throw;
  }
}

std::vector<std::size_t> PreadBulkReader::next_finished() {
  try {
    return crew_->next_finished();
  } catch (...) {
    cancel();
    crew_->rethrow_error();
    throw;
  }
}

void PreadBulkReader::cancel() noexcept {
  const bool reading = !std::exchange(started_, {}).empty();
  if (!reading || !crew_ || crew_->end()) return;
  abandoned_ = true;
  note_left_requests();
}

void PreadBulkReader::read_here(const Done& done) {
  const auto requests = std::exchange(started_, {});
  for (std::size_t i = 0; i < requests.size(); ++i) {
    RequestSplitter pieces(requests.subspan(i, 1), piece_bytes_);
    while (!pieces.empty()) {
      const ReadPiece piece = pieces.next();
      ++counters_.requests;
      file_->read(piece.offset, piece.into);
      counters_.bytes += piece.into.size();
    }
    done(i);
  }
}

BulkCounters PreadBulkReader::counters() const { return crew_ ? crew_->counters() : counters_; }

std::string PreadBulkReader::describe() const {
  return fmt::format("pread, {} at once of {}", depth_, size_text(piece_bytes_));
}

}  // namespace

std::unique_ptr<BulkReader> make_pread_reader(std::shared_ptr<const File> file,
                                              const BulkOptions& options) {
  return std::make_unique<PreadBulkReader>(std::move(file), options);
}

}  // namespace forebay
