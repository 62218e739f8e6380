#include "comm/net/socket.hpp"

#include <fmt/format.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netdb.h>
#include <netinet/tcp.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <memory>
#include <system_error>

#include "core/limits.hpp"
#include "forebay/error.hpp"

namespace forebay::net {
namespace {

// Longer than any number of ranks that begin at once; the system's own limit may be lower.
constexpr int kBacklog = 4096;

[[noreturn]] void fail_socket(const char* call, const std::string& about, int error) {
  throw Error(ErrorKind::communication,
              fmt::format("{} {}: {}", call, about, std::generic_category().message(error)),
              remedy_for(error, "look at the addresses and the interfaces of this host"));
}

void set_option(int socket, int level, int name, int value) {
  setsockopt(socket, level, name, &value, sizeof(value));
}

Descriptor stream_socket(int family) {
  Descriptor socket(::socket(family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (!socket.valid()) fail_socket("socket", "for TCP", errno);
  return socket;
}

std::optional<std::size_t> moved(ssize_t count) {
  if (count > 0) return static_cast<std::size_t>(count);
  if (count < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR)) return 0;
  return std::nullopt;
}

using Found = std::unique_ptr<addrinfo, decltype(&freeaddrinfo)>;

Found look_up(const std::string& host, int flags) {
  addrinfo hints{};
  hints.ai_family = AF_UNSPEC;
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = flags;
  addrinfo* found = nullptr;
  const int status = getaddrinfo(host.c_str(), nullptr, &hints, &found);
  Found result(status == 0 ? found : nullptr, &freeaddrinfo);
  if (status != 0 && (flags & AI_NUMERICHOST) == 0) {
    throw Error(ErrorKind::communication,
                fmt::format("the host '{}' is not known: {}", host, gai_strerror(status)),
                "give the name or the address of a host of this job");
  }
  return result;
}

}  // namespace

void Descriptor::reset() {
  if (number_ >= 0) ::close(number_);
  number_ = -1;
}

Address Address::from(const sockaddr* address, socklen_t size) {
  Address result;
  result.size_ = std::min<socklen_t>(size, sizeof(result.storage_));
  std::memcpy(&result.storage_, address, result.size_);
  return result;
}

Address Address::of(const std::string& host, std::uint16_t port) {
  const Found found = look_up(host, 0);
  return from(found->ai_addr, found->ai_addrlen).with_port(port);
}

std::optional<Address> Address::parse(const std::string& text) {
  const auto space = text.find(' ');
  if (space == std::string::npos) return std::nullopt;
  std::uint16_t port = 0;
  const char* const end = text.data() + text.size();
  const auto [rest, status] = std::from_chars(text.data() + space + 1, end, port);
  if (status != std::errc() || rest != end) return std::nullopt;
  const Found found = look_up(text.substr(0, space), AI_NUMERICHOST);
  if (!found) return std::nullopt;
  return from(found->ai_addr, found->ai_addrlen).with_port(port);
}

Address Address::of_socket(int socket) {
  sockaddr_storage storage{};
  socklen_t size = sizeof(storage);
  auto* const address = reinterpret_cast<sockaddr*>(&storage);
  if (getsockname(socket, address, &size) != 0) fail_socket("getsockname", "of a socket", errno);
  return from(address, size);
}

std::uint16_t Address::port() const {
  const bool six = family() == AF_INET6;
  return ntohs(six ? reinterpret_cast<const sockaddr_in6*>(&storage_)->sin6_port
                   : reinterpret_cast<const sockaddr_in*>(&storage_)->sin_port);
}

Address Address::with_port(std::uint16_t port) const {
  Address result = *this;
  if (family() == AF_INET6) {
    reinterpret_cast<sockaddr_in6*>(&result.storage_)->sin6_port = htons(port);
  } else {
    reinterpret_cast<sockaddr_in*>(&result.storage_)->sin_port = htons(port);
  }
  return result;
}

bool Address::is_loopback() const {
  if (family() == AF_INET6) {
    return IN6_IS_ADDR_LOOPBACK(&reinterpret_cast<const sockaddr_in6*>(&storage_)->sin6_addr);
  }
  return ntohl(reinterpret_cast<const sockaddr_in*>(&storage_)->sin_addr.s_addr) >> 24 == 127;
}

std::string Address::host() const {
  std::array<char, NI_MAXHOST> text{};
  if (getnameinfo(get(), size(), text.data(), text.size(), nullptr, 0, NI_NUMERICHOST) != 0) {
    return "?";
  }
  return text.data();
}

std::string Address::to_text() const { return fmt::format("{} {}", host(), port()); }

std::optional<Address> address_towards(const Address& to) {
  // A datagram socket only looks up the route when it is connected.
  const Descriptor socket(::socket(to.family(), SOCK_DGRAM | SOCK_CLOEXEC, 0));
  const Address target = to.with_port(9);
  if (!socket.valid() || ::connect(socket.get(), target.get(), target.size()) != 0) {
    return std::nullopt;
  }
  return Address::of_socket(socket.get()).with_port(0);
}

std::optional<Address> only_address() {
  ifaddrs* all = nullptr;
  if (getifaddrs(&all) != 0) return std::nullopt;
  const std::unique_ptr<ifaddrs, decltype(&freeifaddrs)> list(all, &freeifaddrs);
  std::optional<Address> found;
  for (const ifaddrs* one = all; one != nullptr; one = one->ifa_next) {
    if (one->ifa_addr == nullptr || one->ifa_addr->sa_family != AF_INET) continue;
    if ((one->ifa_flags & IFF_UP) == 0 || (one->ifa_flags & IFF_LOOPBACK) != 0) continue;
    if (found) return std::nullopt;
    found = Address::from(one->ifa_addr, sizeof(sockaddr_in));
  }
  return found;
}

Descriptor listen_at(const Address& at) {
  Descriptor socket = stream_socket(at.family());
  // A port that was given must be usable again right after a job that has ended.
  if (at.port() != 0) set_option(socket.get(), SOL_SOCKET, SO_REUSEADDR, 1);
  if (::bind(socket.get(), at.get(), at.size()) != 0) fail_socket("bind", at.to_text(), errno);
  if (::listen(socket.get(), kBacklog) != 0) fail_socket("listen", at.to_text(), errno);
  return socket;
}

Descriptor accept_from(const Descriptor& listener) {
  Descriptor socket(::accept4(listener.get(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
  if (socket.valid()) set_option(socket.get(), IPPROTO_TCP, TCP_NODELAY, 1);
  return socket;
}

Descriptor begin_to_connect(const Address& to) {
  Descriptor socket = stream_socket(to.family());
  set_option(socket.get(), IPPROTO_TCP, TCP_NODELAY, 1);
  if (::connect(socket.get(), to.get(), to.size()) != 0 && errno != EINPROGRESS) {
    fail_socket("connect", to.to_text(), errno);
  }
  return socket;
}

int connection_error(const Descriptor& socket) {
  int error = 0;
  socklen_t size = sizeof(error);
  return getsockopt(socket.get(), SOL_SOCKET, SO_ERROR, &error, &size) == 0 ? error : errno;
}

// The limit counts for data that are not confirmed as well. It must not be so short that a process
// which somebody stops for a moment counts as gone.
void watch_other_host(const Descriptor& socket) {
  constexpr int kLimitMs = 30'000;
  set_option(socket.get(), SOL_SOCKET, SO_KEEPALIVE, 1);
  set_option(socket.get(), IPPROTO_TCP, TCP_KEEPIDLE, 5);
  set_option(socket.get(), IPPROTO_TCP, TCP_KEEPINTVL, 5);
  set_option(socket.get(), IPPROTO_TCP, TCP_KEEPCNT, 5);
  set_option(socket.get(), IPPROTO_TCP, TCP_USER_TIMEOUT, kLimitMs);
}

std::optional<std::size_t> send_some(const Descriptor& socket, std::span<const std::byte> bytes) {
  return moved(::send(socket.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL | MSG_DONTWAIT));
}

std::optional<std::size_t> receive_some(const Descriptor& socket, std::span<std::byte> room) {
  return moved(::recv(socket.get(), room.data(), room.size(), MSG_DONTWAIT));
}

}  // namespace forebay::net
