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

std::int64_t Model::serve(const Read& read, const Piece& piece, std::int64_t now_ns, Tally& sum) {
  Server& server = servers_[piece.server];
  const bool seek = server.last_file != read.file || server.last_end != piece.offset;
  const std::int64_t begin = std::max(now_ns, server.free_ns);
  auto service = std::chrono::nanoseconds(static_cast<std::int64_t>(
      static_cast<double>(piece.length) * 1e9 / static_cast<double>(options_.bandwidth)));
  if (seek) service += options_.seek_penalty;
  if (read.stall && server_of(options_, read.file, read.stall->offset) == piece.server) {
    service += read.stall->duration;
  }
  server.free_ns = begin + service.count();
  server.last_file = read.file;
  server.last_end = piece.offset + piece.length;
  ++server.tally.requests;
  server.tally.bytes += piece.length;
  server.tally.count_size(piece.length);
  for (Tally* tally : {&server.tally, &sum}) {
    tally->seeks += seek ? 1 : 0;
    tally->busy_seconds += seconds(service.count());
    tally->queued_seconds += seconds(begin - now_ns);
  }
  return server.free_ns + options_.latency.count();
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
  }
}

}  // namespace forebay::pfs
