#include "pfs/model.hpp"

#include <fmt/format.h>
#include <sys/prctl.h>

#include <algorithm>
#include <bit>

#include "core/clock.hpp"
#include "forebay/error.hpp"

namespace forebay::pfs {
namespace {

// The kernel may wake a sleeper 50 us late by default, to save power.
constexpr unsigned long kTimerSlackNs = 1'000;

std::chrono::steady_clock::time_point time_point(std::int64_t time_ns) {
  return std::chrono::steady_clock::time_point(std::chrono::nanoseconds(time_ns));
}

}  // namespace

DeadlineQueue::DeadlineQueue(std::size_t threads) {
  for (std::size_t i = 0; i < threads; ++i) {
    threads_.emplace_back("pfs-answer", Placement{}, [this](const std::stop_token& stop) {
      ::prctl(PR_SET_TIMERSLACK, kTimerSlackNs, 0, 0, 0);
      run(stop);
    });
  }
}

void DeadlineQueue::push(std::int64_t time_ns, Work work) {
  {
    const std::lock_guard lock(mutex_);
    if (!stopped_) {
      const bool first = items_.empty() || time_ns < items_.top().time_ns;
      items_.push({time_ns, pushed_++, std::move(work)});
      if (first) (led_ ? earlier_ : leaderless_).notify_one();
      return;
    }
  }
  work(false);
}

void DeadlineQueue::stop() {
  {
    const std::lock_guard lock(mutex_);
    stopped_ = true;
  }
  threads_.clear();
  const std::lock_guard lock(mutex_);
  while (!items_.empty()) take_first().work(false);
}

DeadlineQueue::Item DeadlineQueue::take_first() {
  // top() is const because a changed key would break the order; the item leaves at once.
  Item item = std::move(const_cast<Item&>(items_.top()));
  items_.pop();
  return item;
}

void DeadlineQueue::run(const std::stop_token& stop) {
  std::unique_lock lock(mutex_);
  while (leaderless_.wait(lock, stop, [this] { return !led_ && !items_.empty(); })) {
    led_ = true;
    sleep_until_due(lock, stop);
    led_ = false;
    if (stop.stop_requested()) return;
    Item item = take_first();
    if (!items_.empty()) leaderless_.notify_one();
    lock.unlock();
    item.work(true);
    lock.lock();
  }
}

void DeadlineQueue::sleep_until_due(std::unique_lock<std::mutex>& lock,
                                    const std::stop_token& stop) {
  for (std::int64_t next_ns = items_.top().time_ns; now_ns() < next_ns && !stop.stop_requested();
       next_ns = items_.top().time_ns) {
    earlier_.wait_until(lock, stop, time_point(next_ns),
                        [&] { return items_.top().time_ns < next_ns; });
  }
}

namespace {

constexpr std::uint64_t kMostServers = 1024;
constexpr std::uint64_t kLeastStripe = 4096;
constexpr std::uint64_t kMostStripe = std::uint64_t{1} << 40;
constexpr std::uint64_t kMostReadAhead = std::uint64_t{1} << 30;
constexpr std::uint64_t kMostStreams = 1024;
constexpr std::uint64_t kMostBandwidth = 200'000'000;
constexpr std::chrono::milliseconds kLeastLatency{1};

double seconds(std::int64_t nanoseconds) { return static_cast<double>(nanoseconds) * 1e-9; }

std::uint64_t first_server(const ModelOptions& options, std::uint64_t file) {
  return file % options.servers;
}

std::size_t server_of(const ModelOptions& options, std::uint64_t file, std::uint64_t offset) {
  return (first_server(options, file) + offset / options.stripe) % options.servers;
}

void check_limits(const ModelOptions& options) {
  if (options.servers * options.bandwidth > kMostBandwidth) {
    throw Error(
        ErrorKind::usage,
        fmt::format("{} servers of {} bytes/s are more than the {} bytes/s in sum that this "
                    "file system keeps",
                    options.servers, options.bandwidth, kMostBandwidth),
        "lower --servers or --bandwidth, or take it at your own risk with --force");
  }
  if (options.latency < kLeastLatency) {
    throw Error(ErrorKind::usage, "a latency below 1ms drowns in what the file system itself costs",
                "raise --latency, or take it at your own risk with --force");
  }
}

}  // namespace

void check(const ModelOptions& options, bool beyond_limits) {
  const auto refuse = [](const char* what, const char* remedy) {
    throw Error(ErrorKind::usage, what, remedy);
  };
  if (options.servers < 1 || options.servers > kMostServers) {
    refuse("the number of servers is out of range", "give --servers from 1 to 1024");
  }
  if (options.stripe < kLeastStripe || options.stripe > kMostStripe) {
    refuse("the stripe is out of range", "give --stripe from 4KiB to 1TiB");
  }
  if (options.bandwidth < 1 || options.bandwidth > UINT64_MAX / kMostServers) {
    refuse("the bandwidth is out of range", "give --bandwidth in bytes a second, such as 50MB");
  }
  if (options.read_ahead > kMostReadAhead) {
    refuse("the read-ahead of servers is out of range", "give --server-read-ahead up to 1GiB");
  }
  if (options.streams < 1 || options.streams > kMostStreams) {
    refuse("the number of streams is out of range", "give --server-streams from 1 to 1024");
  }
  if (!beyond_limits) check_limits(options);
}

void Tally::count_size(std::uint64_t length) {
  const std::size_t bucket = std::bit_width(length | 1) - 1U;
  ++sizes[std::min(bucket, sizes.size() - 1)];
}

std::vector<Piece> split(const ModelOptions& options, const Read& read) {
  std::vector<Piece> pieces;
  const std::uint64_t end = read.offset + read.length;
  for (std::uint64_t at = read.offset; at < end;) {
    const std::uint64_t stripe = at / options.stripe;
    const std::uint64_t within = at % options.stripe;
    const std::uint64_t length = std::min(end - at, options.stripe - within);
    const std::size_t server = server_of(options, read.file, at);
    const auto same = std::ranges::find(pieces, server, &Piece::server);
    if (same != pieces.end()) {
      same->length += length;
    } else {
      pieces.push_back({server, stripe / options.servers * options.stripe + within, length});
    }
    at += length;
  }
  return pieces;
}

Model::Model(const ModelOptions& options) : options_(options), servers_(options.servers) {}

Answer Model::submit(const Read& read, std::int64_t now_ns) {
  Answer answer{now_ns, {.requests = 1, .bytes = read.length}};
  const std::lock_guard lock(mutex_);
  for (const Piece& piece : split(options_, read)) {
    answer.time_ns = std::max(answer.time_ns, serve(read, piece, now_ns, answer.servers));
  }
  return answer;
}

// How many of the piece's first bytes are in memory. When not all are, its stream is taken out:
// the disk read that follows takes its place.
std::uint64_t Model::take_from_memory(Server& server, std::uint64_t file,
                                      const Piece& piece) const {
  // A stream that the request starts in goes before one that it starts behind.
  const auto reach = [&](const Stream& stream) {
    const bool has_it =
        stream.file == file && stream.begin <= piece.offset && piece.offset <= stream.end;
    return has_it ? stream.end : 0;
  };
  const auto found = std::ranges::max_element(server.streams, {}, reach);
  if (found == server.streams.end() || reach(*found) == 0) return 0;
  const std::uint64_t held = std::min(piece.length, found->end - piece.offset);
  std::rotate(found, found + 1, server.streams.end());  // used last
  if (held < piece.length) server.streams.pop_back();   // its next disk read replaces it
  return held;
}

// Up to `read_ahead` bytes from `end` on, as far as none of them is in memory.
std::uint64_t Model::ahead_of(const Server& server, std::uint64_t file, std::uint64_t end) const {
  std::uint64_t ahead = options_.read_ahead;
  for (const Stream& stream : server.streams) {
    if (stream.file != file || stream.end <= end) continue;
    ahead = std::min(ahead, stream.begin > end ? stream.begin - end : 0);
  }
  return ahead;
}

Model::DiskWork Model::disk_work(Server& server, std::uint64_t file, const Piece& piece) const {
  const std::uint64_t held = take_from_memory(server, file, piece);
  if (held == piece.length) return {};
  const std::uint64_t begin = piece.offset + held;
  const DiskWork work{.seek = server.last_file != file || server.last_end != begin,
                      .bytes = piece.length - held,
                      .ahead = ahead_of(server, file, piece.offset + piece.length)};
  server.last_file = file;
  server.last_end = begin + work.bytes + work.ahead;
  if (options_.read_ahead == 0) return work;
  server.streams.push_back({file, begin, server.last_end});
  if (server.streams.size() > options_.streams) server.streams.erase(server.streams.begin());
  return work;
}

std::chrono::nanoseconds Model::transfer(std::uint64_t bytes) const {
  return std::chrono::nanoseconds(static_cast<std::int64_t>(
      static_cast<double>(bytes) * 1e9 / static_cast<double>(options_.bandwidth)));
}

std::int64_t Model::serve(const Read& read, const Piece& piece, std::int64_t now_ns, Tally& sum) {
  Server& server = servers_[piece.server];
  const DiskWork work = disk_work(server, read.file, piece);
  const std::int64_t begin = std::max(now_ns, server.free_ns);
  auto service = transfer(work.bytes);
  if (work.seek) service += options_.seek_penalty;
  if (read.stall && server_of(options_, read.file, read.stall->offset) == piece.server) {
    service += read.stall->duration;
  }
  const auto busy = service + transfer(work.ahead);
  server.free_ns = begin + busy.count();
  ++server.tally.requests;
  server.tally.bytes += piece.length;
  server.tally.count_size(piece.length);
  for (Tally* tally : {&server.tally, &sum}) {
    tally->seeks += work.seek ? 1 : 0;
    tally->ahead_bytes += work.ahead;
    tally->memory_bytes += piece.length - work.bytes;
    tally->busy_seconds += seconds(busy.count());
    tally->queued_seconds += seconds(begin - now_ns);
  }
  return begin + service.count() + options_.latency.count();
}

std::vector<Tally> Model::tallies() const {
  const std::lock_guard lock(mutex_);
  std::vector<Tally> all;
  for (const Server& server : servers_) all.push_back(server.tally);
  return all;
}

void Model::reset() {
  const std::lock_guard lock(mutex_);
  for (Server& server : servers_) {
    server.tally = {};
    server.last_end = UINT64_MAX;
    server.streams.clear();
  }
}

}  // namespace forebay::pfs
