// Sockets as this room uses them: TCP, never blocking, closed at exec, small messages sent at once.
#pragma once

#include <netinet/in.h>
#include <sys/socket.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <utility>

namespace forebay::net {

/// A file descriptor that is closed at destruction.
class Descriptor {
 public:
  explicit Descriptor(int number = -1) : number_(number) {}
  Descriptor(Descriptor&& other) noexcept : number_(std::exchange(other.number_, -1)) {}
  Descriptor& operator=(Descriptor&& other) noexcept {
    std::swap(number_, other.number_);
    return *this;
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  ~Descriptor() { reset(); }

  int get() const { return number_; }
  bool valid() const { return number_ >= 0; }
  void reset();

 private:
  int number_;
};

/// An IPv4 or IPv6 address, with a port.
class Address {
 public:
  Address() = default;
  /// `host`: an address as text, or a name. Throws communication for a name that is not known.
  static Address of(const std::string& host, std::uint16_t port);
  /// As to_text() writes it. Nothing where it is none.
  static std::optional<Address> parse(const std::string& text);
  static Address of_socket(int socket);

  const sockaddr* get() const { return reinterpret_cast<const sockaddr*>(&storage_); }
  socklen_t size() const { return size_; }
  int family() const { return storage_.ss_family; }
  std::uint16_t port() const;
  Address with_port(std::uint16_t port) const;
  bool is_loopback() const;
  /// "10.0.0.1" or "fe80::1%eth0": without the port.
  std::string host() const;
  /// "10.0.0.1 4711"
  std::string to_text() const;
  static Address from(const sockaddr* address, socklen_t size);

 private:
  sockaddr_storage storage_{};
  socklen_t size_ = 0;
};

/// The address of this host towards `to`: that of the interface over which it is reached. Nothing
/// is sent. Empty where there is no way.
std::optional<Address> address_towards(const Address& to);

/// The IPv4 address of this host, where it has one and no more beside loopback.
std::optional<Address> only_address();

/// Listens on `at` alone; port 0: one that the system chooses. Throws communication.
Descriptor listen_at(const Address& at);
/// The next connection, if one is there, and ready for use.
Descriptor accept_from(const Descriptor& listener);
/// Begins to connect; whether it worked shows once the socket can be written. Throws communication
/// where it fails at once.
Descriptor begin_to_connect(const Address& to);
/// What became of it: 0, or an errno.
int connection_error(const Descriptor& socket);

/// Lets the system notice within half a minute that the other host is gone.
void watch_other_host(const Descriptor& socket);

/// Sends or receives what can be moved now: bytes; 0 where it would have to wait; nothing where the
/// connection has ended.
std::optional<std::size_t> send_some(const Descriptor& socket, std::span<const std::byte> bytes);
std::optional<std::size_t> receive_some(const Descriptor& socket, std::span<std::byte> room);

}  // namespace forebay::net
