// What is behind ParameterServer.
//
//   training thread   push -> mail ... pull <- newest parameters
//   progress thread   poll(): failure of others; letters -> stations, newest parameters
//
// Whatever fails, fails in poll(), or is found there: see failure_board.hpp.
#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <exception>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "comm/failure_board.hpp"
#include "comm/messages.hpp"
#include "comm/node_groups.hpp"
#include "comm/progress_thread.hpp"
#include "comm/values.hpp"
#include "comm/waiting.hpp"
#include "core/clock.hpp"
#include "core/log.hpp"
#include "core/names.hpp"
#include "core/non_copyable.hpp"
#include "core/placement.hpp"
#include "forebay/error.hpp"
#include "forebay/parameter_server.hpp"
#include "forebay/placement.hpp"
#include "sync/servers/newest_parameters.hpp"
#include "sync/servers/server.hpp"
#include "sync/servers/server_tree.hpp"

namespace forebay {
namespace {

using std::chrono::milliseconds;

/// How often a waiting worker looks at its interrupt.
constexpr milliseconds kInterrupts{100};

constexpr Name<ProxyLevel> kLevels[] = {
    {"none", ProxyLevel::none}, {"node", ProxyLevel::node}, {"numa", ProxyLevel::numa}};

void check_options(const Communicator& comm, const ParameterServerOptions& options,
                   std::size_t numbers) {
  if (options.servers < 0 || options.servers > comm.size()) {
    throw Error(ErrorKind::usage,
                fmt::format("{} parameter servers for {} ranks", options.servers, comm.size()),
                fmt::format("choose 1 to {}, or 0 for one a node", comm.size()));
  }
  if (options.patience.count() <= 0) {
    throw Error(ErrorKind::usage, "workers wait 0 ms for parameters", "choose a longer patience");
  }
  if (!comm.concurrent() && comm.size() > 1) {
    throw Error(ErrorKind::unsupported,
                "parameter servers need helper threads that use MPI, which this MPI does not allow",
                "start MPI with MPI_THREAD_MULTIPLE, or sum gradients without servers");
  }
  if (numbers > (kLongestMessage - sizeof(LetterHead)) / sizeof(float)) {
    throw Error(ErrorKind::unsupported,
                fmt::format("{} parameters are too many for parameter servers", numbers),
                "sum gradients without servers");
  }
}

std::string settings(const ParameterServerOptions& options, std::size_t parameters,
                     std::size_t told) {
  return fmt::format("staleness {}, proxies {}, {} servers, {} parameters and {} numbers told",
                     options.staleness, to_string(options.proxies), options.servers, parameters,
                     told);
}

std::vector<RankPlace> places_of(Communicator& comm, Communicator& node, ProxyLevel level) {
  const std::vector<int> nodes = find_nodes(comm, node).first;
  const auto domains =
      gather_all(comm, level == ProxyLevel::numa ? numa_node_of_this_process() : -1);
  std::vector<RankPlace> places;
  for (std::size_t i = 0; i < nodes.size(); ++i) places.push_back({nodes[i], domains[i]});
  return places;
}

}  // namespace

class ParameterServer::Implementation : private NonCopyable {
 public:
  /// Collective.
  Implementation(const std::shared_ptr<Communicator>& comm, std::span<float> parameters,
                 std::span<float> told, UpdateRule rule, ParameterServerOptions options)
      : options_(std::move(options)), parameters_(parameters.size()), told_(told.size()) {
    collectively(*comm, [&] { check_options(*comm, options_, parameters_ + told_); });
    require_agreement(*comm, settings(options_, parameters_, told_), "the parameter servers");
    comm_ = comm->split(0, comm->rank());
    const auto node = comm_->split_by_node();
    failure_.emplace(comm_, node);
    comm_->broadcast(std::as_writable_bytes(parameters), 0);
    comm_->broadcast(std::as_writable_bytes(told), 0);
    const int rank = comm_->rank();
    tree_ = std::make_unique<ServerTree>(places_of(*comm_, *node, options_.proxies),
                                         options_.proxies, options_.servers, parameters_);
    mail_ = std::make_unique<ServerMail>(comm_->split(0, rank), *tree_);
    newest_ = std::make_unique<NewestParameters>(tree_->shards(), parameters, told);
    const Links worker = *tree_->links({rank, Station::worker});
    upstream_ = std::make_unique<Upstream>(*mail_, *tree_, Station::worker, worker.parent);
    stations_ = std::make_unique<Stations>(rank, parameters, told, std::move(rule),
                                           options_.staleness, *mail_, *tree_);
    cores_ = plan_cores(*comm_, options_.placement);
    thread_ = progress_thread(Placement::of(cores_, Component::progress));
    registration_ = thread_->add([this] { return poll(); });
  }

  ~Implementation() {
    try {
      if (!closed_ && failure_->unwinding()) {
        fail(Error(ErrorKind::communication, "a rank has ended its training by an error",
                   "look for the error of that rank"));
      }
      close();
    } catch (const std::exception& error) {
      log(LogLevel::debug, "parameter servers ended: {}", error.what());
    }
    registration_ = {};
  }

  void push(std::span<const float> gradients, std::span<const float> added) {
    require_lengths(gradients.size(), added.size());
    check();
    upstream_->push(clock_, gradients, added);
    ++clock_;
    ++counting_.pushes;
    stir();
  }

  std::uint64_t pull(std::span<float> parameters, std::span<float> told) {
    require_lengths(parameters.size(), told.size());
    check();
    const std::uint64_t needed = clock_ - std::min(clock_, options_.staleness);
    if (newest_->version() < needed) {
      ++counting_.waits;
      // With staleness 0 a push is answered with the very version that is needed.
      if (options_.staleness > 0) {
        ++counting_.requests;
        upstream_->want(needed);
      }
      stir();
      wait(needed, false);
    }
    return newest_->copy(parameters, told);
  }

  void flush(std::span<float> parameters, std::span<float> told) {
    require_lengths(parameters.size(), told.size());
    check();
    upstream_->leave();
    stir();
    wait(0, true);
    newest_->copy(parameters, told);
  }

  std::span<const ParameterShard> shards() const { return tree_->shards(); }
  std::uint64_t clock() const { return clock_; }
  void fail(const Error& error) {
    failure_->fail(error);
    registration_.wake();
  }

  void check() const { newest_->check(); }
  ParameterServerStatistics statistics() const {
    ParameterServerStatistics statistics = counting_;
    statistics.updates = updates_;
    statistics.near_bytes = mail_->near_bytes();
    statistics.far_bytes = mail_->far_bytes();
    return statistics;
  }

  std::string explain() const {
    std::string ranks;
    for (const ParameterShard& shard : shards()) {
      constexpr std::size_t kMostShown = 8;
      if (&shard - shards().data() == kMostShown) {
        ranks += ", ...";
        break;
      }
      ranks += fmt::format("{}{}", ranks.empty() ? "" : ", ", shard.rank);
    }
    return fmt::format("servers: {} shard{} (rank {}), {} prox{} on {} node{} (by {}); {}",
                       shards().size(), shards().size() == 1 ? "" : "s", ranks, tree_->proxies(),
                       tree_->proxies() == 1 ? "y" : "ies", tree_->nodes(),
                       tree_->nodes() == 1 ? "" : "s", to_string(options_.proxies),
                       options_.staleness == 0
                           ? std::string("synchronous")
                           : fmt::format("at most {} steps ahead", options_.staleness));
  }

  void close() {
    if (std::exchange(closed_, true)) return;
    try {
      check();
      // What one rank has pushed all have to flush, and none knows of the others.
      upstream_->leave();
      stir();
      wait(0, true);
    } catch (...) {
      registration_ = {};
      throw;
    }
    // Whoever is done first still has to hand on what the others wait for.
    comm_->barrier();
    registration_ = {};
  }

 private:
  ProgressThread::Rest poll() {
    // After a second without a letter nobody is in a hurry.
    constexpr std::int64_t kQuietNs = 1'000'000'000;
    constexpr ProgressThread::Rest kQuietRest{2'000};
    if (ended_) return ProgressThread::kAnyRest;
    ProgressThread::Rest rest{};
    const auto failure = failure_->turn("a parameter server failed", [&] {
      const std::int64_t look = now_ns();
      const bool moved = read_mail();
      if (stirred_.exchange(false) || moved) pace_.begin();
      rest = pace_.rest_after(look);
    });
    if (failure) {
      ended_ = true;
      newest_->fail(*failure);
      return ProgressThread::kAnyRest;
    }
    return pace_.quiet_ns() > kQuietNs ? kQuietRest : rest;
  }

  // Others use the thread too: some letters a turn.
  bool read_mail() {
    constexpr int kMost = 16;
    int letters = 0;
    while (letters < kMost) {
      auto letter = mail_->receive();
      if (!letter) break;
      deliver(std::move(*letter));
      ++letters;
    }
    return letters > 0;
  }

  void deliver(ServerLetter letter) {
    if (letter.head().to == Station::worker) return newest_->take(letter);
    stations_->take(std::move(letter));
    updates_ = stations_->updates();
  }

  void wait(std::uint64_t version, bool last) {
    const Stopwatch watch(counting_.wait_seconds);
    WaitedTime waited;
    while (!(last ? newest_->wait_for_last(kInterrupts, clock_)
                  : newest_->wait_for(version, kInterrupts))) {
      if (options_.interrupt) options_.interrupt();
      waited.step();
      if (waited.total() < options_.patience) continue;
      const auto seconds = std::chrono::duration<double>(options_.patience).count();
      throw Error(
          ErrorKind::communication,
          fmt::format("waited {:.3g} s for {} of the parameter servers; the newest here have "
                      "version {}",
                      seconds, last ? "the last parameters" : fmt::format("version {}", version),
                      newest_->version()),
          "look for a rank that has stopped, or allow a longer patience");
    }
  }

  void require_lengths(std::size_t parameters, std::size_t told) const {
    if (closed_) {
      throw Error(ErrorKind::usage, "parameter servers are used after close()", "close them last");
    }
    if (parameters == parameters_ && told == told_) return;
    throw Error(ErrorKind::usage,
                fmt::format("{} and {} numbers for parameter servers of {} and {}", parameters,
                            told, parameters_, told_),
                "give as many as at the beginning");
  }

  void stir() {
    stirred_ = true;
    registration_.wake();
  }

  const ParameterServerOptions options_;
  const std::size_t parameters_;
  const std::size_t told_;
  CorePlan cores_;
  std::shared_ptr<Communicator> comm_;
  std::optional<CommonFailure> failure_;
  std::unique_ptr<ServerTree> tree_;
  std::unique_ptr<ServerMail> mail_;
  std::unique_ptr<NewestParameters> newest_;
  std::unique_ptr<Upstream> upstream_;

  // Of the training thread.
  std::uint64_t clock_ = 0;
  bool closed_ = false;
  ParameterServerStatistics counting_;

  // Of the progress thread.
  std::unique_ptr<Stations> stations_;
  Pace pace_;
  bool ended_ = false;

  std::atomic<bool> stirred_ = false;  ///< something is about to come
  std::atomic<std::uint64_t> updates_ = 0;
  std::shared_ptr<ProgressThread> thread_;
  ProgressThread::Registration registration_;  ///< last, so that it ends first
};

// The public side of ParameterServer.

std::string_view to_string(ProxyLevel level) { return name_of(level, kLevels); }

ProxyLevel parse_proxy_level(std::string_view text) { return parse_name("proxies", text, kLevels); }

ParameterServer::ParameterServer(const std::shared_ptr<Communicator>& comm,
                                 std::span<float> parameters, std::span<float> told,
                                 UpdateRule rule, ParameterServerOptions options)
    : implementation_(std::make_unique<Implementation>(comm, parameters, told, std::move(rule),
                                                       std::move(options))) {}

ParameterServer::~ParameterServer() = default;

void ParameterServer::push(std::span<const float> gradients, std::span<const float> added) {
  implementation_->push(gradients, added);
}

std::uint64_t ParameterServer::pull(std::span<float> parameters, std::span<float> told) {
  return implementation_->pull(parameters, told);
}

void ParameterServer::flush(std::span<float> parameters, std::span<float> told) {
  implementation_->flush(parameters, told);
}

std::span<const ParameterShard> ParameterServer::shards() const {
  return implementation_->shards();
}

std::uint64_t ParameterServer::clock() const { return implementation_->clock(); }
void ParameterServer::fail(const Error& error) { implementation_->fail(error); }
void ParameterServer::check() const { implementation_->check(); }

ParameterServerStatistics ParameterServer::statistics() const {
  return implementation_->statistics();
}

std::string ParameterServer::explain() const { return implementation_->explain(); }
void ParameterServer::close() { implementation_->close(); }

}  // namespace forebay
