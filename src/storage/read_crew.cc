#include "storage/read_crew.hpp"

#include <algorithm>
#include <utility>

#include "storage/joined_file.hpp"
#include "storage/no_answer.hpp"

namespace forebay {
namespace {

bool comes_before(const ReadPiece& one, const ReadPiece& other) {
  return std::pair(one.request, one.offset) < std::pair(other.request, other.offset);
}

}  // namespace

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
  pieces_ = RequestSplitter(requests, piece_bytes);
  patience_ = options_.timeout;
  last_answer_ = Clock::now();
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
    const auto deadline = last_answer_ + options_.timeout;
    if (answers_.wait_until(lock, options_.stop, deadline, news)) continue;
    if (last_answer_ + options_.timeout <= Clock::now() && !options_.stop.stop_requested()) {
      patience_ = std::min(patience_, kStopGrace);
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
    answers_.wait_for(lock, options_.stop, patience_, quiet);
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
  last_answer_ = Clock::now();
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

}  // namespace forebay
