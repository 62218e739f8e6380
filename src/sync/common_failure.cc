#include "sync/common_failure.hpp"

#include <fmt/format.h>

#include <chrono>
#include <exception>
#include <utility>

#include "core/clock.hpp"

namespace forebay {
namespace {

/// How often the thread looks for failures that have come from other nodes, while it is awake.
constexpr std::chrono::nanoseconds kLooks = std::chrono::milliseconds(50);

}  // namespace

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
