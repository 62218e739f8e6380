#include "pfs/faults.hpp"

#include <fmt/format.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <sstream>

#include "core/number_text.hpp"
#include "forebay/error.hpp"

namespace forebay::pfs {
namespace {

std::vector<std::string> words_of(std::string_view line) {
  std::istringstream in{std::string(line)};
  std::vector<std::string> words;
  for (std::string word; in >> word;) words.push_back(word);
  return words;
}

}  // namespace

void Faults::command(std::string_view line) {
  const auto words = words_of(line);
  const std::string_view verb = words.empty() ? "" : std::string_view(words[0]);
  if ((verb == "fail" && words.size() == 3) || (verb == "stall" && words.size() == 4)) {
    const Fault fault = parse(words);
    const std::lock_guard lock(mutex_);
    faults_.push_back(fault);
    return;
  }
  const bool is_short = verb == "short" && words.size() == 2;
  const std::lock_guard lock(mutex_);
  if (is_short && words[1] == "on") {
    short_reads_ = true;
  } else if (is_short && words[1] == "off") {
    short_reads_ = false;
  } else if (verb == "clear" && words.size() == 1) {
    faults_.clear();
    short_reads_ = false;
  } else {
    throw Error(ErrorKind::usage, fmt::format("'{}' is no fault", line),
                "say 'fail FILE OFFSET', 'stall FILE OFFSET DURATION', 'short on|off' or 'clear'");
  }
}

Faults::Fault Faults::parse(const std::vector<std::string>& words) const {
  const std::string path = backing_ + "/" + words[1];
  struct stat status {};
  if (::stat(path.c_str(), &status) != 0) {
    throw Error(ErrorKind::not_found, "a fault needs an existing file",
                "name it relative to the backing directory", {.file = path});
  }
  Fault fault{status.st_ino, parse_bytes(words[2], "fault offset"), {}};
  if (words.size() == 4) fault.stall = parse_duration(words[3], "stall");
  return fault;
}

const Faults::Fault* Faults::find(std::uint64_t file, std::uint64_t offset, std::uint64_t length,
                                  bool stalls) const {
  const auto found = std::ranges::find_if(faults_, [&](const Fault& fault) {
    return fault.stall.has_value() == stalls && fault.file == file && fault.offset >= offset &&
           fault.offset - offset < length;
  });
  return found == faults_.end() ? nullptr : &*found;
}

bool Faults::fails(std::uint64_t file, std::uint64_t offset, std::uint64_t length) const {
  const std::lock_guard lock(mutex_);
  return find(file, offset, length, false) != nullptr;
}

std::optional<Stall> Faults::stall(std::uint64_t file, std::uint64_t offset,
                                   std::uint64_t length) const {
  const std::lock_guard lock(mutex_);
  const Fault* fault = find(file, offset, length, true);
  if (fault == nullptr) return std::nullopt;
  return Stall{fault->offset, *fault->stall};
}

std::uint64_t Faults::allowed(std::uint64_t length, bool cached) const {
  const std::lock_guard lock(mutex_);
  return short_reads_ && !cached && length > 1 ? length / 2 : length;
}

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
