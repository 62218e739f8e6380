#include "comm/net/connector.hpp"

#include <fmt/format.h>
#include <poll.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <system_error>
#include <thread>

#include "forebay/error.hpp"

namespace forebay::net {
namespace {

using std::chrono::milliseconds;

// Callers whose handshake goes on. More come only from strangers, of which the first has to go.
constexpr std::size_t kMostCallers = 128;
constexpr milliseconds kLookEvery{500};
constexpr milliseconds kLongestTryPause{1000};

[[noreturn]] void fail_for_duplicate(int rank) {
  throw Error(ErrorKind::usage, fmt::format("two processes say that they are rank {}", rank),
              "give each process of the job a rank of its own", {.rank = rank});
}

}  // namespace

Connector::Connector(const JobSecret& secret, int rank, Descriptor listener,
                     std::vector<Address> addresses, Limits limits)
    : secret_(secret),
      rank_(rank),
      listener_(std::move(listener)),
      addresses_(std::move(addresses)),
      limits_(std::move(limits)),
      connections_(static_cast<std::size_t>(secret.ranks)),
      connected_(static_cast<std::size_t>(secret.ranks), false),
      missing_(secret.ranks - 1),
      missing_callers_(secret.ranks - 1 - rank),
      next_look_(Clock::now() + kLookEvery) {
  for (int below = 0; below < rank_; ++below) {
    called_.push_back({.rank = below, .call = {}, .next_try = Clock::now()});
  }
}

std::vector<Descriptor> Connector::connect_all() {
  while (!complete()) {
    begin_calls();
    wait();
    serve_callers();
    serve_calls();
    if (missing_callers_ > 0) {
      accept_callers();
    } else {
      listener_.reset();
    }
    check_time();
  }
  listener_.reset();
  return std::move(connections_);
}

void Connector::accept_callers() {
  for (;;) {
    Descriptor socket = accept_from(listener_);
    if (!socket.valid()) break;
    if (callers_.size() == kMostCallers) callers_.pop_front();
    callers_.push_back({.socket = std::move(socket),
                        .handshake = Handshake::listen(secret_, rank_, random_bytes(), connected_),
                        .until = Clock::now() + limits_.handshake});
  }
  if (errno != EMFILE && errno != ENFILE) return;
  if (!callers_.empty()) callers_.pop_front();
  std::this_thread::sleep_for(milliseconds(10));
}

void Connector::begin_calls() {
  const auto now = Clock::now();
  for (Called& called : called_) {
    if (called.call || connected_[static_cast<std::size_t>(called.rank)] || now < called.next_try) {
      continue;
    }
    try {
      called.call.emplace(
          Call{.socket = begin_to_connect(addresses_[static_cast<std::size_t>(called.rank)]),
               .handshake = Handshake::connect(secret_, rank_, called.rank, random_bytes()),
               .until = now + limits_.handshake,
               .connected = false});
    } catch (const Error& error) {
      fault_ = error.happened();
      called.next_try = now + called.pause;  // its host may not be reachable yet
    }
  }
}

void Connector::wait() {
  std::vector<pollfd> watched;
  if (listener_.valid()) watched.push_back({.fd = listener_.get(), .events = POLLIN, .revents = 0});
  const auto watch = [&](const Call& call) {
    const bool output = !call.connected || !call.handshake.to_send().empty();
    watched.push_back({.fd = call.socket.get(),
                       .events = static_cast<short>(output ? POLLIN | POLLOUT : POLLIN),
                       .revents = 0});
  };
  for (const Call& caller : callers_) watch(caller);
  bool pauses = false;
  for (const Called& called : called_) {
    if (called.call) watch(*called.call);
    pauses = pauses || (!called.call && !connected_[static_cast<std::size_t>(called.rank)]);
  }
  // For deadlines, which need no more.
  ::poll(watched.data(), watched.size(), pauses ? 20 : 100);
}

/// Moves what can be moved; true when it is over, one way or the other.
bool Connector::move(Call& call, bool& failed) {
  failed = false;
  if (!call.connected) {
    pollfd ready{.fd = call.socket.get(), .events = POLLOUT, .revents = 0};
    if (::poll(&ready, 1, 0) == 0) return failed = Clock::now() > call.until;
    if (const int error = connection_error(call.socket)) {
      fault_ = std::generic_category().message(error);
      return failed = true;
    }
    call.connected = true;
  }
  for (bool moved = true; moved && !call.handshake.over();) {
    moved = false;
    if (!call.handshake.to_send().empty()) {
      const auto sent = send_some(call.socket, call.handshake.to_send());
      if (!sent) return failed = true;
      call.handshake.sent(*sent);
      moved = *sent > 0;
    }
    if (call.handshake.wants() > 0) {
      std::array<std::byte, 64> room{};
      const auto got = receive_some(
          call.socket, std::span(room).first(std::min(room.size(), call.handshake.wants())));
      if (!got) return failed = true;
      call.handshake.received(std::span(room).first(*got));
      moved = moved || *got > 0;
    }
  }
  if (call.handshake.over()) return true;
  return failed = Clock::now() > call.until;
}

void Connector::serve_callers() {
  for (auto caller = callers_.begin(); caller != callers_.end();) {
    bool failed = false;
    if (!move(*caller, failed)) {
      ++caller;
      continue;
    }
    const Verdict verdict = failed ? Verdict::stranger : caller->handshake.verdict();
    const int other = caller->handshake.other();
    if (verdict == Verdict::duplicate) fail_for_duplicate(other);
    if (verdict == Verdict::welcome) {
      keep(other, std::move(caller->socket));
      --missing_callers_;
    }
    caller = callers_.erase(caller);
  }
}

void Connector::serve_calls() {
  for (Called& called : called_) {
    bool failed = false;
    if (!called.call || !move(*called.call, failed)) continue;
    const Verdict verdict = failed ? Verdict::stranger : called.call->handshake.verdict();
    if (verdict == Verdict::duplicate) fail_for_duplicate(rank_);
    if (verdict == Verdict::welcome) keep(called.rank, std::move(called.call->socket));
    called.call.reset();
    called.next_try = Clock::now() + called.pause;
    called.pause = std::min(2 * called.pause, kLongestTryPause);
  }
}

void Connector::keep(int rank, Descriptor socket) {
  watch_other_host(socket);
  connections_[static_cast<std::size_t>(rank)] = std::move(socket);
  connected_[static_cast<std::size_t>(rank)] = true;
  --missing_;
}

void Connector::check_time() {
  const auto now = Clock::now();
  if (now >= limits_.deadline && !complete()) fail_for_time();
  if (now < next_look_) return;
  next_look_ = now + kLookEvery;
  if (limits_.look) limits_.look();
}

void Connector::fail_for_time() const {
  std::string missing;
  int first = -1;
  for (int rank = 0; rank < secret_.ranks; ++rank) {
    if (rank == rank_ || connected_[static_cast<std::size_t>(rank)]) continue;
    missing += fmt::format("{}{}", first < 0 ? "" : ", ", rank);
    if (first < 0) first = rank;
  }
  throw Error(ErrorKind::communication,
              fmt::format("rank {} could not be connected with: {}{}", rank_, missing,
                          fault_.empty() ? "" : " (" + fault_ + ")"),
              "look whether they run, and whether a firewall is between the nodes",
              {.rank = first});
}

}  // namespace forebay::net
