// One rank keeps the values and answers the others.
//
//   request   magic, what, bytes of the key, bytes of the value | key | value
//   answer    magic, 1 where there is one, bytes of the value, 0 | value
//
// Requests follow each other on a connection. A client asks again and again for what is not there.
// The server looks at every length, keeps a few connections more than there are ranks at most, and
// closes those from which nothing whole has come for a while.
#include <fmt/format.h>
#include <poll.h>
#include <sys/eventfd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <thread>
#include <utility>

#include "comm/messages.hpp"
#include "comm/net/socket.hpp"
#include "core/non_copyable.hpp"
#include "core/placement.hpp"
#include "forebay/error.hpp"
#include "forebay/rendezvous.hpp"

namespace forebay::net {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;
using Value = std::vector<std::byte>;

constexpr std::uint32_t kRendezvousMagic = 0x31524246;
constexpr std::size_t kMostClients = 2048;
constexpr std::chrono::seconds kLongestSilence{30};
constexpr std::chrono::seconds kLongestExchange{10};

enum class Wish : std::uint32_t { set, get, erase };

struct RequestHead {
  std::uint32_t magic = kRendezvousMagic;
  std::uint32_t wish = 0;
  std::uint32_t key_bytes = 0;
  std::uint32_t value_bytes = 0;
};
struct AnswerHead {
  std::uint32_t magic = kRendezvousMagic;
  std::uint32_t found = 0;
  std::uint32_t bytes = 0;
  std::uint32_t reserved = 0;
};

void append(Value& to, std::span<const std::byte> bytes) {
  to.insert(to.end(), bytes.begin(), bytes.end());
}

/// The values, for the server's own rank and its thread.
class KeptValues {
 public:
  void set(const std::string& key, Value value) {
    const std::lock_guard lock(mutex_);
    values_[key] = std::move(value);
    changed_.notify_all();
  }
  void erase(const std::string& key) {
    const std::lock_guard lock(mutex_);
    values_.erase(key);
  }
  std::optional<Value> get(const std::string& key, milliseconds limit) {
    std::unique_lock lock(mutex_);
    changed_.wait_for(lock, limit, [&] { return values_.contains(key); });
    const auto found = values_.find(key);
    return found == values_.end() ? std::nullopt : std::optional(found->second);
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::map<std::string, Value> values_;
};

/// One connection of the server.
class Client {
 public:
  explicit Client(Descriptor socket) : socket_(std::move(socket)) {}

  int descriptor() const { return socket_.get(); }
  short events() const { return out_.empty() ? POLLIN : POLLOUT; }
  bool silent(steady_clock::time_point now) const { return now - heard_ > kLongestSilence; }

  /// Moves what can be moved; false when the connection is of no more use.
  bool move(KeptValues& values) {
    while (!out_.empty()) {
      const auto sent = send_some(socket_, out_);
      if (!sent) return false;
      if (*sent == 0) return true;
      out_.erase(out_.begin(), out_.begin() + static_cast<std::ptrdiff_t>(*sent));
    }
    std::array<std::byte, 4096> room{};
    const auto got = receive_some(socket_, room);
    if (!got) return false;
    append(in_, std::span(room).first(*got));
    return answer(values);
  }

 private:
  /// At most one request: the next one is answered when this answer has left.
  bool answer(KeptValues& values) {
    RequestHead head;
    if (in_.size() < sizeof(head)) return true;
    std::memcpy(&head, in_.data(), sizeof(head));
    if (head.magic != kRendezvousMagic || head.wish > static_cast<std::uint32_t>(Wish::erase) ||
        head.key_bytes > Rendezvous::kLongestKey || head.value_bytes > Rendezvous::kLongestValue) {
      return false;
    }
    const std::size_t size = sizeof(head) + head.key_bytes + head.value_bytes;
    if (in_.size() < size) return true;
    heard_ = steady_clock::now();
    const auto* const text = reinterpret_cast<const char*>(in_.data() + sizeof(head));
    carry_out(values, static_cast<Wish>(head.wish), std::string(text, head.key_bytes),
              std::span(in_).subspan(sizeof(head) + head.key_bytes, head.value_bytes));
    in_.erase(in_.begin(), in_.begin() + static_cast<std::ptrdiff_t>(size));
    return true;
  }

  void carry_out(KeptValues& values, Wish wish, const std::string& key,
                 std::span<const std::byte> value) {
    std::optional<Value> found;
    if (wish == Wish::set) values.set(key, {value.begin(), value.end()});
    if (wish == Wish::erase) values.erase(key);
    if (wish == Wish::get) found = values.get(key, milliseconds(0));
    append(out_,
           message_of(AnswerHead{.found = found ? 1U : 0U,
                                 .bytes = found ? static_cast<std::uint32_t>(found->size()) : 0U}));
    if (found) append(out_, *found);
  }

  Descriptor socket_;
  steady_clock::time_point heard_ = steady_clock::now();
  Value in_;
  Value out_;
};

class ServedRendezvous final : public Rendezvous, private NonCopyable {
 public:
  ServedRendezvous(std::string host, std::uint16_t& port)
      : host_(std::move(host)),
        listener_(listen_at(Address::of(host_, port))),
        stop_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)),
        thread_("fb-rendezvous", {}, [this](const std::stop_token& stop) { run(stop); }) {
    port = Address::of_socket(listener_.get()).port();
  }
  ~ServedRendezvous() override { thread_.stop(); }

  void set(const std::string& key, std::span<const std::byte> value) override {
    values_.set(key, {value.begin(), value.end()});
  }
  std::optional<Value> get(const std::string& key, milliseconds limit) override {
    return values_.get(key, limit);
  }
  std::string host() const override { return host_; }

 private:
  void run(const std::stop_token& stop) {
    const std::stop_callback wake_up(stop, [this] { eventfd_write(stop_.get(), 1); });
    std::vector<pollfd> watched;
    while (!stop.stop_requested()) {
      watched.assign({{.fd = stop_.get(), .events = POLLIN, .revents = 0},
                      {.fd = listener_.get(), .events = POLLIN, .revents = 0}});
      for (const Client& client : clients_) {
        watched.push_back({.fd = client.descriptor(), .events = client.events(), .revents = 0});
      }
      ::poll(watched.data(), watched.size(), 1000);
      serve(std::span(watched).subspan(2));
      if (watched[1].revents != 0) accept_all();
    }
  }

  void serve(std::span<const pollfd> watched) {
    const auto now = steady_clock::now();
    std::size_t i = 0;
    std::erase_if(clients_, [&](Client& client) {
      const bool ready = watched[i++].revents != 0;
      return ready ? !client.move(values_) : client.silent(now);
    });
  }

  void accept_all() {
    for (;;) {
      Descriptor socket = accept_from(listener_);
      if (!socket.valid()) break;
      if (clients_.size() >= kMostClients) clients_.pop_front();
      clients_.emplace_back(std::move(socket));
    }
    // Out of descriptors: without a rest the listener would be ready again at once.
    if (errno == EMFILE || errno == ENFILE) std::this_thread::sleep_for(milliseconds(10));
  }

  std::string host_;
  KeptValues values_;
  Descriptor listener_;
  Descriptor stop_;
  std::list<Client> clients_;
  HelperThread thread_;
};

class JoinedRendezvous final : public Rendezvous {
 public:
  JoinedRendezvous(std::string host, std::uint16_t port)
      : host_(std::move(host)), server_(Address::of(host_, port)) {}

  void set(const std::string& key, std::span<const std::byte> value) override {
    ask(Wish::set, key, value, kLongestExchange);
  }
  std::optional<Value> get(const std::string& key, milliseconds limit) override {
    const auto deadline = steady_clock::now() + limit;
    for (milliseconds rest{2};; rest = std::min(2 * rest, milliseconds(100))) {
      if (auto value = look(key)) return value;
      const auto now = steady_clock::now();
      if (now >= deadline) return std::nullopt;
      std::this_thread::sleep_for(std::min<steady_clock::duration>(rest, deadline - now));
    }
  }
  std::string host() const override { return host_; }

 private:
  using Deadline = steady_clock::time_point;

  /// Where the server is not there yet, there is no value either.
  std::optional<Value> look(const std::string& key) {
    try {
      return ask_once(Wish::get, key, {}, steady_clock::now() + kLongestExchange);
    } catch (const Error&) {
      socket_.reset();
      return std::nullopt;
    }
  }

  /// Repeated while the server is not there.
  std::optional<Value> ask(Wish wish, const std::string& key, std::span<const std::byte> value,
                           milliseconds limit) {
    const Deadline deadline = steady_clock::now() + limit;
    for (;;) {
      try {
        return ask_once(wish, key, value, deadline);
      } catch (const Error&) {
        socket_.reset();
        if (steady_clock::now() >= deadline) throw;
        std::this_thread::sleep_for(milliseconds(50));
      }
    }
  }

  std::optional<Value> ask_once(Wish wish, const std::string& key, std::span<const std::byte> value,
                                Deadline deadline) {
    if (!socket_.valid()) {
      socket_ = begin_to_connect(server_);
      wait(POLLOUT, deadline);
      if (const int error = connection_error(socket_)) fail(std::strerror(error));
    }
    Value request;
    append(request,
           message_of(RequestHead{.wish = static_cast<std::uint32_t>(wish),
                                  .key_bytes = static_cast<std::uint32_t>(key.size()),
                                  .value_bytes = static_cast<std::uint32_t>(value.size())}));
    append(request, std::as_bytes(std::span(key)));
    append(request, value);
    for (std::span<const std::byte> rest = request; !rest.empty();) {
      const auto sent = send_some(socket_, rest);
      if (!sent) fail("its connection has ended");
      rest = rest.subspan(*sent);
      if (*sent == 0) wait(POLLOUT, deadline);
    }
    AnswerHead head;
    receive_all(std::as_writable_bytes(std::span(&head, 1)), deadline);
    if (head.magic != kRendezvousMagic || head.bytes > kLongestValue) fail("its answer is none");
    Value answer(head.bytes);
    receive_all(answer, deadline);
    return head.found != 0 ? std::optional(std::move(answer)) : std::nullopt;
  }

  void receive_all(std::span<std::byte> room, Deadline deadline) {
    while (!room.empty()) {
      const auto got = receive_some(socket_, room);
      if (!got) fail("its connection has ended");
      room = room.subspan(*got);
      if (*got == 0) wait(POLLIN, deadline);
    }
  }

  void wait(short events, Deadline deadline) {
    pollfd watched{.fd = socket_.get(), .events = events, .revents = 0};
    const auto left =
        std::chrono::duration_cast<milliseconds>(deadline - steady_clock::now()).count();
    if (::poll(&watched, 1, static_cast<int>(std::max<std::int64_t>(left, 0))) == 0) {
      fail("it does not answer");
    }
  }

  [[noreturn]] void fail(const std::string& how) const {
    throw Error(ErrorKind::communication,
                fmt::format("the rendezvous at {} cannot be used: {}", server_.to_text(), how),
                "start the rank that serves it, and look at its address and port");
  }

  std::string host_;
  Address server_;
  Descriptor socket_;
};

}  // namespace
}  // namespace forebay::net

namespace forebay {

std::unique_ptr<Rendezvous> serve_rendezvous(const std::string& host, std::uint16_t& port) {
  return std::make_unique<net::ServedRendezvous>(host, port);
}

std::unique_ptr<Rendezvous> join_rendezvous(const std::string& host, std::uint16_t port) {
  return std::make_unique<net::JoinedRendezvous>(host, port);
}

}  // namespace forebay
