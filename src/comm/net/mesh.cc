#include "comm/net/mesh.hpp"

#include <fmt/format.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <exception>
#include <stop_token>
#include <system_error>

#include "core/copy_values.hpp"
#include "core/limits.hpp"
#include "core/log.hpp"
#include "forebay/error.hpp"

namespace forebay::net {
namespace {

// How long the end of a rank takes at most, whatever the others do.
constexpr std::chrono::seconds kLongestEnd{5};
// What one connection may bring before it is the next one's turn.
constexpr int kMostReads = 8;

Descriptor checked(int descriptor, const char* call) {
  if (descriptor >= 0) return Descriptor(descriptor);
  const int error = errno;
  throw Error(ErrorKind::io, fmt::format("{}: {}", call, std::generic_category().message(error)),
              remedy_for(error, ""));
}

std::vector<int> numbers(const std::vector<Descriptor>& connections) {
  std::vector<int> all;
  for (const Descriptor& one : connections) {
    if (one.valid()) all.push_back(one.get());
  }
  return all;
}

}  // namespace

/// One other rank.
struct Mesh::Peer : FrameSink {
  Peer(Mesh& owner, int other, Descriptor descriptor)
      : mesh(owner), rank(other), socket(std::move(descriptor)), reader(other, *this) {}

  std::span<std::byte> begin(const FrameHeader& header) override {
    return mesh.mailbox_.begin(rank, header, arrival);
  }
  void end(const FrameHeader& header) override {
    switch (header.port().channel) {
      case Channel::farewell:
        return mesh.hear_farewell(*this);
      case Channel::read_request:
        return mesh.answer(*this, header, std::exchange(arrival.own, {}));
      default:
        return mesh.mailbox_.end(rank, header, arrival);
    }
  }

  Mesh& mesh;
  int rank;
  Descriptor socket;

  std::mutex send_mutex;  ///< of what follows; taken after the other one where both are
  SendQueue queue;
  bool watches_output = false;
  bool sends = true;  ///< until either side says farewell, or the connection ends

  std::mutex receive_mutex;  ///< of what follows
  FrameReader reader;
  Arrival arrival;
  bool open = true;  ///< of the network thread alone
};

Sending::~Sending() {
  if (!kept_ && !done()) mesh_->finish_copying(to_, *frame_);
}

Receiving::Receiving(Mesh& mesh, int from, const Port& port, std::span<std::byte> to, bool wakes)
    : mesh_(&mesh), posted_(std::make_unique<Posted>()) {
  posted_->source = from;
  posted_->port = port;
  posted_->to = to;
  posted_->wakes = wakes;
  mesh.post(*posted_);
}

Receiving::~Receiving() {
  if (posted_ && posted_->state.load(std::memory_order_acquire) == Posted::State::waiting) {
    mesh_->withdraw(*posted_);
  }
}

bool Receiving::done() const {
  if (!posted_) return true;
  // In this order: whatever the rank has sent was received before it is known to send no more.
  const bool there = mesh_->mailbox().is_there(posted_->source);
  const auto state = posted_->state.load(std::memory_order_acquire);
  if (state == Posted::State::filled) return true;
  if (state == Posted::State::misfit) {
    throw Error(ErrorKind::communication,
                fmt::format("this rank sends another number of bytes than the {} that another one "
                            "waits for",
                            posted_->to.size()),
                "let all ranks make the same calls", {.rank = posted_->source});
  }
  if (!there) mesh_->mailbox().fail_for(posted_->source);
  return false;
}

std::shared_ptr<Mesh> Mesh::make(int rank, std::vector<Descriptor> connections,
                                 const Placement& placement) {
  // A forked child leaves everything as it is: the thread and what it waits for are not there.
  std::shared_ptr<Mesh> mesh(new Mesh(rank, std::move(connections)), [](Mesh* old) {
    if (!old->in_child()) delete old;
  });
  mesh->start(placement);
  return mesh;
}

Mesh::Mesh(int rank, std::vector<Descriptor> connections)
    : rank_(rank),
      mailbox_(static_cast<int>(connections.size())),
      epoll_(checked(epoll_create1(EPOLL_CLOEXEC), "epoll_create1")),
      wake_(checked(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK), "eventfd")),
      fork_guard_([&] {
        auto all = numbers(connections);
        all.insert(all.end(), {epoll_.get(), wake_.get()});
        return all;
      }()) {
  for (std::size_t other = 0; other < connections.size(); ++other) {
    auto& made = peers_.emplace_back(
        std::make_unique<Peer>(*this, static_cast<int>(other), std::move(connections[other])));
    made->open = made->sends = made->socket.valid();
    if (!made->open) continue;
    ++open_;
    epoll_event event{.events = EPOLLIN, .data = {.ptr = made.get()}};
    if (epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, made->socket.get(), &event) != 0) {
      checked(-1, "epoll_ctl");
    }
  }
  epoll_event event{.events = EPOLLIN, .data = {.ptr = nullptr}};
  if (epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, wake_.get(), &event) != 0) checked(-1, "epoll_ctl");
}

void Mesh::start(const Placement& placement) {
  thread_ = HelperThread("fb-net", placement, [this](const std::stop_token& stop) { run(stop); });
}

Mesh::~Mesh() {
  say_farewell();
  thread_.stop();
}

void Mesh::require_own_process() const {
  if (!in_child()) return;
  throw Error(ErrorKind::usage, "a forked process uses the connections of its parent",
              "use the communicator in the process that made it, and start workers before it");
}

std::uint64_t Mesh::new_communicator() {
  constexpr int kBitsOfCount = 40;
  return (static_cast<std::uint64_t>(rank_) + 1) << kBitsOfCount | ++made_;
}

void Mesh::end_communicator(std::uint64_t communicator) {
  if (!in_child()) mailbox_.forget(communicator);
}

void Mesh::deliver_here(const Port& port, std::span<const std::byte> bytes) {
  const auto header = FrameHeader::make(rank_, port, bytes.size());
  Arrival arrival;
  arrival.own.assign(bytes.begin(), bytes.end());
  mailbox_.end(rank_, header, arrival);
}

Sending Mesh::start_send(int to, const Port& port, std::span<const std::byte> bytes,
                         std::shared_ptr<const void> owner) {
  require_own_process();
  if (to == rank_) {
    deliver_here(port, bytes);
    return {};
  }
  if (mailbox_.is_gone(to)) mailbox_.fail_for(to);
  auto frame = std::make_shared<Outgoing>();
  frame->header = FrameHeader::make(rank_, port, bytes.size());
  frame->payload = bytes;
  const bool kept = owner != nullptr;
  frame->owner = std::move(owner);
  push(peer(to), frame);
  return {*this, to, std::move(frame), kept};
}

/// Sends what can be sent at once; the network thread does the rest.
void Mesh::push(Peer& peer, std::shared_ptr<Outgoing> frame) {
  const std::lock_guard lock(peer.send_mutex);
  if (!peer.sends) {
    frame->owner.reset();
    frame->done = true;
    return;
  }
  peer.queue.push(std::move(frame));
  if (!peer.watches_output) flush(peer);
}

/// With send_mutex held.
void Mesh::flush(Peer& peer) {
  const auto state = peer.queue.flush(peer.socket);
  // The network thread finds out what became of a broken connection, behind what it still brings.
  if (state == SendQueue::State::broken) peer.sends = false;
  watch(peer, state == SendQueue::State::blocked);
}

void Mesh::watch(Peer& peer, bool output) {
  if (output == peer.watches_output) return;
  peer.watches_output = output;
  epoll_event event{.events = output ? EPOLLIN | EPOLLOUT : EPOLLIN, .data = {.ptr = &peer}};
  epoll_ctl(epoll_.get(), EPOLL_CTL_MOD, peer.socket.get(), &event);
}

void Mesh::finish_copying(int to, Outgoing& frame) {
  if (in_child()) return;
  const std::lock_guard lock(peer(to).send_mutex);
  if (!frame.done) frame.copy_rest();
}

void Mesh::post(Posted& posted) {
  require_own_process();
  mailbox_.post(posted);
}

void Mesh::withdraw(Posted& posted) {
  if (in_child()) return;
  Peer& from = peer(posted.source);
  const std::lock_guard lock(from.receive_mutex);
  mailbox_.withdraw(posted);
  if (from.arrival.posted != &posted) return;
  from.arrival.posted = nullptr;
  from.arrival.dropped = true;
  from.arrival.own.resize(posted.to.size());
  from.reader.redirect(from.arrival.own);
}

std::optional<std::vector<std::byte>> Mesh::take(int from, const Port& port) {
  require_own_process();
  const bool gone = mailbox_.is_gone(from);  // known before the look: see Receiving::done
  auto message = mailbox_.take(from, port);
  if (!message && gone) mailbox_.fail_for(from);
  return message;
}

std::optional<std::vector<std::byte>> Mesh::take_notice(std::uint64_t communicator) {
  require_own_process();
  return mailbox_.take_notice(communicator);
}

void Mesh::serve(std::uint64_t communicator, ServedMemory memory) {
  mailbox_.serve(communicator, std::move(memory));
}

void Mesh::run(const std::stop_token& stop) {
  ask_for_short_turns();
  const std::stop_callback wake_up(stop, [this] { eventfd_write(wake_.get(), 1); });
  std::array<epoll_event, 64> events{};
  while (!stop.stop_requested()) {
    const int count = epoll_wait(epoll_.get(), events.data(), static_cast<int>(events.size()), -1);
    for (int i = 0; i < count; ++i) {
      auto* const peer = static_cast<Peer*>(events[static_cast<std::size_t>(i)].data.ptr);
      if (peer == nullptr) continue;  // to look at the stop request
      if ((events[static_cast<std::size_t>(i)].events & EPOLLOUT) != 0) {
        {
          const std::lock_guard lock(peer->send_mutex);
          flush(*peer);
        }
        mailbox_.wake();
      }
      if ((events[static_cast<std::size_t>(i)].events & ~EPOLLOUT) != 0) receive(*peer);
    }
  }
}

void Mesh::receive(Peer& peer) {
  const std::lock_guard lock(peer.receive_mutex);
  if (!peer.open) return;
  try {
    for (int reads = 0; reads < kMostReads; ++reads) {
      const auto room = peer.reader.room();
      std::size_t wanted = 0;
      for (const iovec& part : room) wanted += part.iov_len;
      msghdr message{};
      message.msg_iov = const_cast<iovec*>(room.data());
      message.msg_iovlen = room.size();
      const ssize_t got = ::recvmsg(peer.socket.get(), &message, MSG_DONTWAIT);
      if (got == 0) return lose(peer, "its connection has ended");
      if (got < 0) {
        if (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR) return;
        return lose(peer, std::generic_category().message(errno));
      }
      peer.reader.took(static_cast<std::size_t>(got));
      if (static_cast<std::size_t>(got) < wanted) return;
    }
  } catch (const Error& error) {
    lose(peer, error.happened());
  } catch (const std::exception& error) {  // no memory for what it sends
    lose(peer, error.what());
  }
}

/// Out of the memory itself, without a copy.
void Mesh::answer(Peer& peer, const FrameHeader& header, std::span<const std::byte> request) {
  const ServedMemory memory = mailbox_.served(header.communicator);
  const Port port{
      .communicator = header.communicator, .channel = Channel::read_answer, .tag = header.tag};
  const std::lock_guard lock(peer.send_mutex);
  if (!peer.sends) return;
  for (; request.size() >= sizeof(ReadPlace); request = request.subspan(sizeof(ReadPlace))) {
    ReadPlace place;
    std::memcpy(&place, request.data(), sizeof(place));
    const bool inside = place.bytes <= kLongestFrame && place.offset <= memory.bytes.size() &&
                        place.bytes <= memory.bytes.size() - place.offset;
    auto frame = std::make_shared<Outgoing>();
    if (inside) frame->payload = memory.bytes.subspan(place.offset, place.bytes);
    frame->header = FrameHeader::make(rank_, port, frame->payload.size());
    frame->owner = memory.owner;
    peer.queue.push(std::move(frame));
  }
  if (!peer.watches_output) flush(peer);
}

/// The other rank ends: it wants nothing any more, and waits for this side to close.
void Mesh::hear_farewell(Peer& peer) {
  mailbox_.set_ended(peer.rank);
  const std::lock_guard lock(peer.send_mutex);
  peer.sends = false;
  peer.queue.clear();
  watch(peer, false);
  ::shutdown(peer.socket.get(), SHUT_WR);
}

void Mesh::lose(Peer& peer, const std::string& how) {
  peer.open = false;
  {
    const std::lock_guard lock(peer.send_mutex);
    peer.sends = false;
    peer.queue.clear();
    epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, peer.socket.get(), nullptr);
    ::shutdown(peer.socket.get(), SHUT_RDWR);
  }
  --open_;
  mailbox_.set_gone(peer.rank, how);  // unless it has said farewell
  mailbox_.wake();
}

void Mesh::say_farewell() {
  for (const auto& one : peers_) {
    const std::lock_guard lock(one->send_mutex);
    if (!one->sends) continue;
    auto frame = std::make_shared<Outgoing>();
    frame->header = FrameHeader::make(rank_, {.channel = Channel::farewell}, 0);
    one->queue.push(std::move(frame));
    if (!one->watches_output) flush(*one);
  }
  try {
    const WaitPolicy policy{.timeout = kLongestEnd};
    mailbox_.wait(policy, "the farewells of other ranks", [this] { return open_ == 0; });
  } catch (const Error& late) {
    log(LogLevel::info, "connections are closed before all is sent: {}", late.what());
  }
}

}  // namespace forebay::net
