// The threads behind the pread engine, and what they share with the one that waits for them.
//
//   caller:  begin(requests) -> next_finished() ... next_finished() -> empty: all are complete
//   thread:  takes the next piece, reads it, reports it, until there are none
//
// The state is owned jointly: a thread that is stuck in a read which never returns keeps its share
// (and the file) alive for as long as it takes, while the caller has long given up.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <exception>
#include <memory>
#include <mutex>
#include <stop_token>
#include <vector>

#include "storage/request_splitter.hpp"

namespace forebay {

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
  using Clock = std::chrono::steady_clock;

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
  Clock::time_point last_answer_;       // or begin()
  std::chrono::milliseconds patience_;  // of end()
  std::exception_ptr error_;            // of failed_
  ReadPiece failed_;                    // the first of them that failed
  BulkCounters counters_;
};

}  // namespace forebay
