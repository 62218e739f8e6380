#include "comm/failure_board.hpp"

#include <fmt/format.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <exception>
#include <new>
#include <string>
#include <thread>
#include <utility>

#include "comm/values.hpp"
#include "core/clock.hpp"
#include "core/log.hpp"

namespace forebay {

/// What the ranks of a node share. All bytes zero: no failure, no rank registered.
struct FailureBoard::Memory {
  enum State : std::uint32_t { kCalm, kWriting, kReadable };
  static constexpr std::size_t kTextBytes = 4000;
  static constexpr int kMaxPeers = 4096;

  struct Peer {
    std::atomic<std::int64_t> pid;
    std::atomic<std::uint64_t> pid_namespace;
  };

  std::atomic<std::uint32_t> state;
  std::uint32_t length;
  std::array<char, kTextBytes> text;
  std::array<Peer, kMaxPeers> peers;
};

namespace {

/// How often the thread looks for failures that have come from other nodes, while it is awake.
constexpr std::chrono::nanoseconds kLooks = std::chrono::milliseconds(50);

/// The text form, with what is long cut so that it fits into `limit` bytes.
std::string short_text(const Error& error, std::size_t limit) {
  std::string text = serialize(error);
  if (text.size() <= limit) return text;
  const auto cut = [limit](const std::string& part) { return part.substr(0, limit / 8); };
  Where where = error.where();
  where.file = cut(where.file);
  where.key = cut(where.key);
  text = serialize(Error(error.kind(), cut(error.happened()) + "...", cut(error.remedy()), where));
  return text.size() <= limit
             ? text
             : serialize(Error(error.kind(), "a rank failed", "", {.rank = where.rank}));
}

std::uint64_t own_pid_namespace() {
  struct stat status {};
  return stat("/proc/self/ns/pid", &status) == 0 ? status.st_ino : 0;
}

}  // namespace

FailureBoard::FailureBoard(std::shared_ptr<Communicator> world, std::shared_ptr<Communicator> node)
    : world_(std::move(world)),
      node_rank_(node->rank()),
      next_peer_check_(std::chrono::steady_clock::now() + std::chrono::seconds(1)) {
  // What fails on one node must not leave the others waiting for it.
  collectively(*world_, [&] { share_memory(*node); });
  memory_ = std::launder(reinterpret_cast<Memory*>(shared_->bytes().data()));
  auto& me = memory_->peers[static_cast<std::size_t>(node_rank_)];
  me.pid_namespace = own_pid_namespace();
  me.pid = getpid();
  node_world_ranks_ = gather_all(*node, world_->rank());
  const int my_leader = node_world_ranks_.front();
  other_leaders_ = gather_all(*world_, my_leader);
  std::sort(other_leaders_.begin(), other_leaders_.end());
  other_leaders_.erase(std::unique(other_leaders_.begin(), other_leaders_.end()),
                       other_leaders_.end());
  std::erase(other_leaders_, my_leader);
  // A rank that has heard of a failure otherwise does not wait for notices of it.
  if (several_nodes()) world_->carry_messages();
}

void FailureBoard::share_memory(Communicator& node) {
  if (node.size() > Memory::kMaxPeers) {
    throw Error(ErrorKind::unsupported, fmt::format("{} ranks on one node", node.size()),
                "set FOREBAY_RANKS_PER_NODE to split it");
  }
  shared_ = node.share(sizeof(Memory), SharedMemoryKind::posix);
  collectively(node, [&] {
    if (node.rank() != 0) return;
    shared_->reserve(0, sizeof(Memory));
    std::memset(shared_->bytes().data(), 0, sizeof(Memory));
  });
}

FailureBoard::~FailureBoard() { memory_->peers[static_cast<std::size_t>(node_rank_)].pid = 0; }

void FailureBoard::fail(const Error& error) {
  publish(short_text(error.at_rank(world_->rank()), Memory::kTextBytes));
  to_send_ = true;
  if (!world_->concurrent()) return;
  try {
    poll();
  } catch (const Error& broken) {
    log(LogLevel::warning, "other nodes may not hear of a failure: {}", broken.what());
  }
}

void FailureBoard::publish(const std::string& text) {
  std::uint32_t calm = Memory::kCalm;
  if (!memory_->state.compare_exchange_strong(calm, Memory::kWriting)) {
    // Whoever has published must find a failure on the board, and the first one may be half
    // written.
    for (int tries = 0; tries < 100 && !failed(); ++tries) {
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    return;
  }
  const std::size_t length = std::min(text.size(), Memory::kTextBytes);
  std::copy_n(text.begin(), length, memory_->text.begin());
  memory_->length = static_cast<std::uint32_t>(length);
  memory_->state.store(Memory::kReadable, std::memory_order_release);
}

bool FailureBoard::failed() const {
  return memory_->state.load(std::memory_order_acquire) == Memory::kReadable;
}

void FailureBoard::check() const {
  if (!failed()) return;
  throw parse_error(std::string_view(memory_->text.data(), memory_->length));
}

void FailureBoard::poll() {
  const std::lock_guard lock(poll_mutex_);
  send_pending();
  receive();
  check_world();
  const auto now = std::chrono::steady_clock::now();
  if (now < next_peer_check_) return;
  next_peer_check_ = now + std::chrono::seconds(1);
  check_peers();
}

void FailureBoard::send_pending() {
  if (!to_send_ || !failed()) return;
  to_send_ = false;
  const std::span text(memory_->text.data(), memory_->length);
  for (const int leader : other_leaders_) world_->send_notice(leader, std::as_bytes(text));
}

void FailureBoard::receive() {
  if (!several_nodes() || node_rank_ != 0) return;
  while (const auto message = world_->poll_notice()) {
    publish(std::string(reinterpret_cast<const char*>(message->data()), message->size()));
  }
}

/// What failed on that rank is known before its end, if it was told.
void FailureBoard::check_world() {
  if (failed()) return;
  try {
    world_->check_ranks();
  } catch (const Error& gone) {
    publish(short_text(gone, Memory::kTextBytes));
    to_send_ = true;
    send_pending();
  }
}

void FailureBoard::check_peers() {
  if (failed()) return;
  const auto& me = memory_->peers[static_cast<std::size_t>(node_rank_)];
  for (std::size_t i = 0; i < node_world_ranks_.size(); ++i) {
    const auto& peer = memory_->peers[i];
    const std::int64_t pid = peer.pid;
    // A process number means something only within one process namespace.
    if (pid == 0 || peer.pid_namespace != me.pid_namespace) continue;
    if (kill(static_cast<pid_t>(pid), 0) == 0 || errno != ESRCH) continue;
    publish(serialize(Error(ErrorKind::communication,
                            fmt::format("process {} of this rank has died", pid),
                            "look at the launcher's output and the system log for the cause")
                          .at_rank(node_world_ranks_[i])));
    to_send_ = true;
    send_pending();
    return;
  }
}

CommonFailure::CommonFailure(std::shared_ptr<Communicator> comm, std::shared_ptr<Communicator> node)
    : board_(std::move(comm), std::move(node)), exceptions_(std::uncaught_exceptions()) {}

std::optional<Error> CommonFailure::turn(std::string_view what, const std::function<void()>& work) {
  try {
    look();
    work();
    return {};
  } catch (const Error& error) {
    return first(error);
  } catch (const std::exception& error) {
    return first(Error(ErrorKind::communication, fmt::format("{}: {}", what, error.what()), ""));
  }
}

void CommonFailure::look() {
  board_.check();
  const std::int64_t now = now_ns();
  if (now < next_look_ns_) return;
  next_look_ns_ = now + kLooks.count();
  board_.poll();
  board_.check();
}

/// Not what this rank has come across, if another was sooner.
Error CommonFailure::first(const Error& mine) {
  board_.fail(mine);
  try {
    board_.check();
  } catch (const Error& first) {
    return first;
  }
  return mine;
}

bool CommonFailure::unwinding() const { return std::uncaught_exceptions() > exceptions_; }

}  // namespace forebay
