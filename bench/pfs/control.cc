#include "pfs/control.hpp"

#include <fmt/format.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <cstring>

#include "forebay/error.hpp"

namespace forebay::pfs {
namespace {

constexpr int kStopCheckMs = 100;
constexpr std::size_t kLongestLine = 4096;

bool readable(int descriptor) {
  pollfd waiting{descriptor, POLLIN, 0};
  return ::poll(&waiting, 1, kStopCheckMs) > 0;
}

}  // namespace

Control::Control(std::string path, Handler handler)
    : path_(std::move(path)),
      handler_(std::move(handler)),
      socket_(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
  sockaddr_un address{.sun_family = AF_UNIX, .sun_path = {}};
  if (path_.size() >= sizeof address.sun_path) {
    throw Error(ErrorKind::usage, "the path is too long for a socket",
                "give --control a shorter one", {.file = path_});
  }
  std::memcpy(address.sun_path, path_.data(), path_.size());
  if (::bind(socket_.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0 ||
      ::listen(socket_.get(), 4) != 0) {
    throw Error(ErrorKind::io, fmt::format("no socket can be made: {}", std::strerror(errno)),
                "give --control a path that does not exist, in a directory that can be written",
                {.file = path_});
  }
  thread_ = HelperThread("pfs-control", Placement{},
                         [this](const std::stop_token& stop) { serve(stop); });
}

Control::~Control() {
  thread_.stop();
  ::unlink(path_.c_str());
}

void Control::serve(const std::stop_token& stop) {
  while (!stop.stop_requested()) {
    if (!readable(socket_.get())) continue;
    const Descriptor connection(::accept4(socket_.get(), nullptr, nullptr, SOCK_CLOEXEC));
    if (connection.get() >= 0) converse(connection.get());
  }
}

// One command a connection, so that nobody can keep others out by staying.
void Control::converse(int connection) {
  std::string line;
  std::array<char, 512> bytes{};
  while (line.find('\n') == std::string::npos && line.size() < kLongestLine) {
    if (!readable(connection)) return;
    const ssize_t got = ::recv(connection, bytes.data(), bytes.size(), 0);
    if (got <= 0) return;
    line.append(bytes.data(), static_cast<std::size_t>(got));
  }
  const std::string answer = handler_(line.substr(0, line.find('\n'))) + "\n";
  for (std::size_t sent = 0; sent < answer.size();) {
    const ssize_t more =
        ::send(connection, answer.data() + sent, answer.size() - sent, MSG_NOSIGNAL);
    if (more <= 0) return;
    sent += static_cast<std::size_t>(more);
  }
}

}  // namespace forebay::pfs
