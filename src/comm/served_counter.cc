#include "comm/served_counter.hpp"

#include <cstring>
#include <utility>

#include "comm/waiting.hpp"
#include "core/log.hpp"
#include "forebay/error.hpp"

namespace forebay {
namespace {

struct Request {
  std::uint64_t rank = 0;
  std::uint64_t number = 0;
  std::uint64_t add = 0;
  std::uint64_t answer = 0;  ///< whether one is wanted
};

struct Answer {
  static constexpr std::uint64_t kGone = 0;  ///< requests count from 1
  std::uint64_t number = kGone;
  std::uint64_t before = 0;
};

template <typename Value>
std::span<const std::byte> bytes_of(const Value& value) {
  return std::as_bytes(std::span(&value, 1));
}

template <typename Value>
Value parse(std::span<const std::byte> message) {
  Value value;
  if (message.size() != sizeof(value)) {
    throw Error(ErrorKind::communication, "a message of a shared counter has a wrong length",
                "this is a fault of Forebay: please report it");
  }
  std::memcpy(&value, message.data(), sizeof(value));
  return value;
}

}  // namespace

ServedCounter::ServedCounter(std::shared_ptr<Communicator> comm, std::chrono::milliseconds limit,
                             std::string why)
    : comm_(std::move(comm)), limit_(limit), why_(std::move(why)) {}

ServedCounter::~ServedCounter() {
  if (!owns()) return;
  try {
    serve();
    const Answer gone;
    for (int rank = 1; rank < comm_->size(); ++rank) comm_->send(rank, bytes_of(gone));
  } catch (const Error& error) {
    log(LogLevel::warning, "other ranks may wait for a counter that is gone: {}", error.what());
  }
}

void ServedCounter::ask(std::uint64_t n, bool answer) {
  const Request request{.rank = static_cast<std::uint64_t>(comm_->rank()),
                        .number = ++asked_,
                        .add = n,
                        .answer = answer ? 1U : 0U};
  comm_->send_notice(0, bytes_of(request));
}

/// The answer to the last request, once it is there.
std::optional<std::uint64_t> ServedCounter::answer() {
  while (!gone_) {
    const auto message = comm_->try_receive(0);
    if (!message) return std::nullopt;
    const auto answer = parse<Answer>(*message);
    if (answer.number == Answer::kGone) gone_ = true;
    if (answer.number == asked_) return answer.before;
  }
  return std::nullopt;
}

std::optional<std::uint64_t> ServedCounter::fetch_add(std::uint64_t n, const GiveUp& give_up) {
  if (owns()) {
    serve();
    return number_.fetch_add(n);
  }
  if (gone_) return std::nullopt;
  const std::lock_guard lock(mutex_);
  ask(n, true);
  const WaitPolicy policy{.timeout = limit_, .interrupt = {}};
  for (Waiting waiting(policy, "rank 0 to answer for a shared counter");; waiting.step()) {
    const auto before = answer();
    if (before || gone_ || (give_up && give_up())) return before;
  }
}

void ServedCounter::add(std::uint64_t n) {
  if (owns()) {
    number_ += n;
    return;
  }
  if (gone_) return;
  const std::lock_guard lock(mutex_);
  ask(n, false);
}

bool ServedCounter::serve() {
  if (!owns()) return false;
  const std::unique_lock lock(mutex_, std::try_to_lock);
  if (!lock.owns_lock()) return false;  // another thread is at it
  bool served = false;
  while (const auto message = comm_->poll_notice()) {
    served = true;
    const auto request = parse<Request>(*message);
    const Answer answer{.number = request.number, .before = number_.fetch_add(request.add)};
    if (request.answer != 0) comm_->send(static_cast<int>(request.rank), bytes_of(answer));
  }
  return served;
}

std::string ServedCounter::describe() const {
  return comm_->size() == 1 ? "a number of this process" : "answered by rank 0: " + why_;
}

}  // namespace forebay
