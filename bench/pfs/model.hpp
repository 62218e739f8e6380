// The modelled parallel file system: when is a read answered, and what did the servers do for it?
//
// Files are striped over S servers as parallel file systems do it. Stripe k of a file lies on
// server (first + k) mod S, where `first` is the file's number mod S; all stripes of a file on one
// server form an object there, without gaps:
//
//   file     | 0 | 1 | 2 | 3 | 4 | 5 |          S = 2, first = 0
//   server 0   0   2   4      object offsets 0, stripe, 2 stripe
//   server 1   1   3   5
//
// A read becomes at most one request to each server, since neighbouring stripes of a server are
// neighbours in its object. A server serves one request at a time, first come first served:
//
//   begin      = max(arrival, when the server is free)
//   free again = begin + (seek penalty, unless the request starts in the object where the last one
//                         ended) + bytes / bandwidth + a stall, when one was injected
//   answered   = free again + latency
//
// Latency thus overlaps between requests, as a network's does, and everything else does not. The
// read is answered when its last request is.
//
// A server may read ahead, which makes it slower the more clients it has (off unless asked for):
//
//   bytes in its memory     cost nothing
//   others                  come from disk as above, and the next `read_ahead` bytes of the object
//                           after them, up to what is in memory: the request is answered before
//                           these, the server is busy until they are there too
//   memory                  holds the last disk read of each of the `streams` used last. A request
//                           belongs to the stream that it starts in, or directly behind; any other
//                           one starts a stream
//
// In order, or with few readers, every byte comes from disk once, in long reads. With more streams
// than the memory holds, what was read ahead is thrown out before somebody asks for it: each
// request costs a seek and `read_ahead` bytes for nothing. Storage knows positions and no clients;
// clients whose parts adjoin are one stream when they come in order, and several when not. That is
// what the papers say of their servers (I/O randomization "cannot benefit from ... data prefetching
// and caching", dissertation 5.1.3), and why Lustre's advice for storage arrays is to switch their
// read-ahead off; docs/pfs.md has the sources.
//
// Times are nanoseconds of one steady clock, bytes are bytes. Nothing here waits or reads a file.
#pragma once

#include <array>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <mutex>
#include <optional>
#include <queue>
#include <stop_token>
#include <vector>

#include "core/non_copyable.hpp"
#include "core/placement.hpp"

namespace forebay::pfs {

// Work that is due at a point in time, done by a few threads that sleep until then.
//
// Nobody spins, and no thread is held by work that is not due: thousands of delayed answers cost
// their memory alone. One thread at a time, the leader, sleeps until the next item is due; the
// others sleep until there is no leader, so that a deadline wakes one thread and not all.

/// Thread-safe; local.
class DeadlineQueue : private NonCopyable {
 public:
  /// Called once: at or after its time with true, or early with false because the queue was
  /// stopped. Must not throw.
  using Work = std::function<void(bool due)>;

  explicit DeadlineQueue(std::size_t threads);
  ~DeadlineQueue() { stop(); }

  /// `time_ns` as now_ns() counts. After stop() the work is called at once.
  void push(std::int64_t time_ns, Work work);
  /// Calls what still waits, and ends the threads. Idempotent.
  void stop();

 private:
  struct Item {
    std::int64_t time_ns;
    std::uint64_t number;  ///< same times: first come, first served
    Work work;
  };
  struct Later {
    bool operator()(const Item& a, const Item& b) const {
      return a.time_ns != b.time_ns ? a.time_ns > b.time_ns : a.number > b.number;
    }
  };

  void run(const std::stop_token& stop);
  void sleep_until_due(std::unique_lock<std::mutex>& lock, const std::stop_token& stop);
  Item take_first();

  std::mutex mutex_;
  std::condition_variable_any earlier_;     ///< tells the leader: the next item is another one
  std::condition_variable_any leaderless_;  ///< tells the others: there are items, and no leader
  std::priority_queue<Item, std::vector<Item>, Later> items_;
  std::uint64_t pushed_ = 0;
  bool led_ = false;
  bool stopped_ = false;
  std::vector<HelperThread> threads_;  // last: they use all of the above
};

struct ModelOptions {
  std::uint64_t servers = 4;
  std::uint64_t stripe = std::uint64_t{1} << 20;  ///< bytes
  std::uint64_t bandwidth = 50'000'000;           ///< bytes a second, of each server
  std::chrono::nanoseconds latency = std::chrono::milliseconds(1);       ///< of each request
  std::chrono::nanoseconds seek_penalty = std::chrono::milliseconds(2);  ///< occupies the server
  std::uint64_t read_ahead = 0;  ///< bytes that a server reads beyond what it was asked for
  std::uint64_t streams = 2;     ///< of which a server that reads ahead keeps the last disk read
};

/// Throws usage for values without meaning, and, unless `beyond_limits`, for values that a user
/// space file system on a small machine cannot keep: more than 200 MB/s in sum, less than 1 ms.
void check(const ModelOptions& options, bool beyond_limits);

/// A part of a read that one server answers.
struct Piece {
  std::size_t server;
  std::uint64_t offset;  ///< in the server's object
  std::uint64_t length;
};

/// What was asked of a server, or by a client. Busy and queued seconds are sums over requests: busy
/// near the length of the run means a saturated server, queued / busy is how many waited on average
/// while it worked.
struct Tally {
  std::uint64_t requests = 0;
  std::uint64_t bytes = 0;
  std::uint64_t seeks = 0;  ///< disk reads that did not start where the server's last one ended
  /// Read ahead, and requested bytes that were in memory. Ahead without the latter was for nothing.
  std::uint64_t ahead_bytes = 0;
  std::uint64_t memory_bytes = 0;
  double busy_seconds = 0;                ///< seeking, transferring, reading ahead, stalling
  double queued_seconds = 0;              ///< between arrival and begin
  std::array<std::uint64_t, 48> sizes{};  ///< [i]: requests of 2^i to 2^(i+1) - 1 bytes

  void count_size(std::uint64_t bytes);
};

/// A server that hangs when the read touches byte `offset` of the file.
struct Stall {
  std::uint64_t offset;
  std::chrono::nanoseconds duration;
};

struct Read {
  std::uint64_t file;  ///< any number that is the file's own
  std::uint64_t offset;
  std::uint64_t length;  ///< at least 1
  std::optional<Stall> stall = {};
};

struct Answer {
  std::int64_t time_ns;  ///< when the client has its bytes
  Tally servers;         ///< what the servers did for this read; `sizes` stays empty
};

/// The servers' shared state. Thread-safe; local.
class Model {
 public:
  explicit Model(const ModelOptions& options);

  /// Puts a read that arrives at `now_ns` into the servers' queues.
  Answer submit(const Read& read, std::int64_t now_ns);

  std::vector<Tally> tallies() const;
  /// Counts start again, and the servers forget where their last request ended, so that the next
  /// one is a seek, and what they have read ahead. Queues stay.
  void reset();

 private:
  /// A disk read that is still in memory: [begin, end) of the file's object.
  struct Stream {
    std::uint64_t file;
    std::uint64_t begin;
    std::uint64_t end;
  };

  struct Server {
    std::int64_t free_ns = 0;
    std::uint64_t last_file = 0;
    std::uint64_t last_end = UINT64_MAX;
    std::vector<Stream> streams;  ///< used last comes last
    Tally tally;
  };

  /// What a request makes the server's disk do.
  struct DiskWork {
    bool seek = false;
    std::uint64_t bytes = 0;  ///< that were asked for
    std::uint64_t ahead = 0;
  };

  std::uint64_t ahead_of(const Server& server, std::uint64_t file, std::uint64_t end) const;
  DiskWork disk_work(Server& server, std::uint64_t file, const Piece& piece) const;
  std::uint64_t take_from_memory(Server& server, std::uint64_t file, const Piece& piece) const;
  std::chrono::nanoseconds transfer(std::uint64_t bytes) const;
  std::int64_t serve(const Read& read, const Piece& piece, std::int64_t now_ns, Tally& sum);

  ModelOptions options_;
  mutable std::mutex mutex_;
  std::vector<Server> servers_;
};

/// The requests that `read` becomes, in the order of their first byte in the file.
std::vector<Piece> split(const ModelOptions& options, const Read& read);

}  // namespace forebay::pfs
