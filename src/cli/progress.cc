#include "cli/progress.hpp"

#include <fmt/format.h>

#include <cstdio>

#include "cli/output.hpp"

namespace forebay {
namespace {

using namespace std::chrono_literals;

constexpr auto kTerminalPeriod = 200ms;
constexpr auto kPlainPeriod = 5s;

}  // namespace

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
