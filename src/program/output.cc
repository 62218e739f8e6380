#include "program/output.hpp"

#include <fmt/format.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <climits>
#include <cstdlib>
#include <cstring>
#include <nlohmann/json.hpp>

#include "core/limits.hpp"
#include "storage/pipe.hpp"

namespace forebay {
namespace {

using namespace std::chrono_literals;

constexpr auto kTerminalPeriod = 200ms;
constexpr auto kPlainPeriod = 5s;
constexpr std::size_t kBufferBytes = std::size_t{4} << 10;

}  // namespace

void print_error(std::string_view message) {
  std::string line(message);
  for (char& c : line) {
    if (static_cast<unsigned char>(c) < 0x20) c = ' ';
  }
  const bool color = use_color(stderr);
  // Not fmt::print, which throws: a message that cannot be shown must not end in a crash.
  const std::string text = fmt::format("forebay: {}error:{} {}\n", color ? "\033[1;31m" : "",
                                       color ? "\033[0m" : "", line);
  std::fwrite(text.data(), 1, text.size(), stderr);
}

void print_json(const nlohmann::ordered_json& json) {
  fmt::print("{}\n", json.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace));
}

namespace {

[[noreturn]] void fail_to_print(const std::string& why, int error) {
  throw Error(ErrorKind::io, "standard output: " + why,
              remedy_for(error, "make room where the output goes"));
}

}  // namespace

void print_bytes(std::span<const std::byte> bytes) {
  if (std::fwrite(bytes.data(), 1, bytes.size(), stdout) == bytes.size()) return;
  const int error = errno;
  fail_to_print(std::strerror(error), error);
}

void flush_output() {
  if (std::fflush(stdout) != 0) {
    const int error = errno;
    fail_to_print(std::strerror(error), error);
  }
  // Why is long gone.
  if (std::ferror(stdout) != 0) fail_to_print("it cannot be written", 0);
}

void print_row(std::string_view name, std::string_view text) {
  fmt::print("  {:<16} {}\n", name, text);
}

std::string human_bytes(std::uint64_t bytes) {
  constexpr std::array<const char*, 7> kUnits{"B", "kB", "MB", "GB", "TB", "PB", "EB"};
  if (bytes < 1000) return fmt::format("{} B", bytes);
  double value = static_cast<double>(bytes);
  std::size_t unit = 0;
  while (value >= 999.5) {
    value /= 1000;
    ++unit;
  }
  return fmt::format("{:.{}f} {}", value, value < 9.995 ? 2 : value < 99.95 ? 1 : 0, kUnits[unit]);
}

std::string human_count(std::uint64_t count) {
  std::string text = std::to_string(count);
  for (std::size_t i = text.size(); i > 3; i -= 3) text.insert(i - 3, 1, ',');
  return text;
}

LineFile::LineFile(const std::string& path, std::chrono::milliseconds limit)
    : path_(path.empty() ? "standard output" : path),
      fd_(path.empty() ? STDOUT_FILENO : open_output(path, limit)),
      pipe_(forebay::is_pipe(fd_)) {}

LineFile::~LineFile() {
  try {
    write(1ms);
  } catch (const Error&) {  // another one is told already
  }
  if (fd_ != STDOUT_FILENO) ::close(fd_);
}

void LineFile::add(std::span<const std::byte> text) {
  text_.append(reinterpret_cast<const char*>(text.data()), text.size());
}

bool LineFile::write(std::chrono::milliseconds limit) {
  const auto end = std::chrono::steady_clock::now() + limit;
  while (written_ < text_.size()) {
    std::size_t count = text_.size() - written_;
    if (pipe_) {
      if (!wait_for_pipe(fd_, POLLOUT, limit)) return false;
      count = std::min<std::size_t>(count, PIPE_BUF);  // for which there is room
    }
    const ssize_t got = ::write(fd_, text_.data() + written_, count);
    if (got < 0 && errno != EINTR && !(pipe_ && errno == EAGAIN)) {
      const int error = errno;
      text_.clear();
      written_ = 0;
      throw output_error(path_, error);
    }
    if (got > 0) written_ += static_cast<std::size_t>(got);
    if (pipe_ && limit.count() > 0 && std::chrono::steady_clock::now() > end) break;
  }
  if (written_ < text_.size()) return false;
  text_.clear();
  written_ = 0;
  return true;
}

void LineFile::write_full_buffers() {
  if (text_.size() >= kBufferBytes) write(0ms);
}

bool is_terminal(std::FILE* stream) { return isatty(fileno(stream)) == 1; }

bool use_color(std::FILE* stream) {
  const char* no_color = std::getenv("NO_COLOR");
  return (no_color == nullptr || *no_color == '\0') && is_terminal(stream);
}

Progress::Progress(std::string verb, std::uint64_t total)
    : verb_(std::move(verb)),
      total_(total),
      terminal_(is_terminal(stderr)),
      start_(Clock::now()),
      next_(start_ +
            (terminal_ ? Clock::duration(kTerminalPeriod) : Clock::duration(kPlainPeriod))) {}

Progress::~Progress() {
  if (terminal_ && shown_) fmt::print(stderr, "\r\033[K");
}

void Progress::update(std::uint64_t done) {
  if (calls_++ == 0) first_ = done;
  const auto now = Clock::now();
  if (now < next_) return;
  next_ = now + (terminal_ ? Clock::duration(kTerminalPeriod) : Clock::duration(kPlainPeriod));
  show(done, now);
}

void Progress::show(std::uint64_t done, Clock::time_point now) {
  const double seconds = std::chrono::duration<double>(now - start_).count();
  const auto rate = static_cast<std::uint64_t>(static_cast<double>(done - first_) / seconds);
  std::string line = fmt::format("{} {}", verb_, human_count(done));
  if (total_ != 0) {
    line += fmt::format(" of {} ({:.0f} %)", human_count(total_),
                        100.0 * static_cast<double>(done) / static_cast<double>(total_));
  }
  line += fmt::format(", {} a second", human_count(rate));
  fmt::print(stderr, "{}{}{}", terminal_ ? "\r" : "", line, terminal_ ? "\033[K" : "\n");
  std::fflush(stderr);
  shown_ = true;
}

}  // namespace forebay
