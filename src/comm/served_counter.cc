// A SharedCounter that works wherever messages do: rank 0 answers.
//
//   rank r:  notice {kind, r, k, n} --> rank 0: serve() adds --> message {k, before} --> rank r
//
// k numbers the requests of a rank, so that the answer to one that was given up is told from the
// next. Requests are notices because rank 0 takes these from anybody at once.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "comm/messages.hpp"
#include "comm/waiting.hpp"
#include "core/log.hpp"
#include "core/non_copyable.hpp"
#include "forebay/communicator.hpp"
#include "forebay/error.hpp"

namespace forebay {
namespace {

// Only so that no request is left without a receiver, which some MPI libraries complain about.
constexpr std::chrono::seconds kLongestFarewell{1};
constexpr std::string_view kAbout = "a shared counter";

struct Request {
  enum Kind : std::uint64_t { kAdd, kFetchAndAdd, kLeave };
  std::uint64_t kind = kAdd;
  std::uint64_t rank = 0;
  std::uint64_t number = 0;
  std::uint64_t add = 0;
};

struct Answer {
  static constexpr std::uint64_t kGone = 0;  ///< requests count from 1
  std::uint64_t number = kGone;
  std::uint64_t before = 0;
};

class ServedCounter final : public SharedCounter, private NonCopyable {
 public:
  ServedCounter(std::shared_ptr<Communicator> comm, std::chrono::milliseconds limit,
                std::string why)
      : comm_(std::move(comm)),
        limit_(limit),
        why_(std::move(why)),
        left_(static_cast<std::size_t>(comm_->size()), false) {
    comm_->carry_messages();
  }

  ~ServedCounter() override {
    try {
      if (owns()) {
        wait_until_all_leave();
      } else if (!is_gone()) {
        ask(Request::kLeave, 0);
      }
    } catch (const Error& error) {
      log(LogLevel::warning, "other ranks may wait for a counter that is gone: {}", error.what());
    }
  }

  std::optional<std::uint64_t> fetch_add(std::uint64_t n, const GiveUp& give_up) override {
    if (owns()) {
      serve();
      return number_.fetch_add(n);
    }
    const std::lock_guard lock(mutex_);
    if (is_gone()) return std::nullopt;
    ask(Request::kFetchAndAdd, n);
    const WaitPolicy policy{.timeout = limit_};
    for (Waiting waiting(policy, "rank 0 to answer for a shared counter");; waiting.step()) {
      const auto before = receive_answer();
      if (before || gone_ || (give_up && give_up())) return before;
    }
  }

  void add(std::uint64_t n) override {
    if (owns()) {
      number_ += n;
      return;
    }
    const std::lock_guard lock(mutex_);
    if (!is_gone()) ask(Request::kAdd, n);
  }

  bool serve() override {
    if (!owns()) return false;
    const std::unique_lock lock(mutex_, std::try_to_lock);
    if (!lock.owns_lock()) return false;  // another thread is at it
    bool served = false;
    while (const auto message = comm_->poll_notice()) {
      served = true;
      answer(*message);
    }
    return served;
  }

  bool needs_serving() const override { return comm_->size() > 1; }
  std::string describe() const override {
    return comm_->size() == 1 ? "a number of this process" : "answered by rank 0: " + why_;
  }

 private:
  bool owns() const { return comm_->rank() == 0; }
  void ask(std::uint64_t kind, std::uint64_t n) {
    const Request request{.kind = kind,
                          .rank = static_cast<std::uint64_t>(comm_->rank()),
                          .number = ++asked_,
                          .add = n};
    comm_->send_notice(0, message_of(request));
  }

  /// The answer to the last request, once it is there.
  std::optional<std::uint64_t> receive_answer() {
    while (!gone_) {
      const auto message = comm_->try_receive(0);
      if (!message) return std::nullopt;
      const auto answer = value_in<Answer>(*message, kAbout);
      if (answer.number == Answer::kGone) gone_ = true;
      if (answer.number == asked_) return answer.before;
    }
    return std::nullopt;
  }

  /// Looks before anything is sent to a rank 0 that takes nothing any more.
  bool is_gone() {
    receive_answer();
    return gone_;
  }

  void answer(std::span<const std::byte> message) {
    const auto request = value_in<Request>(message, kAbout);
    const std::size_t rank = request.rank;
    if (rank >= left_.size()) return;
    if (request.kind == Request::kLeave) left_[rank] = true;
    const Answer answer{.number = request.number, .before = number_.fetch_add(request.add)};
    if (request.kind == Request::kFetchAndAdd)
      comm_->send(static_cast<int>(rank), message_of(answer));
  }

  void wait_until_all_leave() {
    left_[0] = true;
    const auto all_left = [&] { return std::ranges::find(left_, false) == left_.end(); };
    const auto deadline = std::chrono::steady_clock::now() + kLongestFarewell;
    for (serve(); !all_left() && std::chrono::steady_clock::now() < deadline; serve()) {
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    const Answer gone;
    for (int rank = 1; rank < comm_->size(); ++rank) {
      if (!left_[static_cast<std::size_t>(rank)]) comm_->send(rank, message_of(gone));
    }
  }

  std::shared_ptr<Communicator> comm_;
  std::chrono::milliseconds limit_;
  std::string why_;
  std::atomic<std::uint64_t> number_ = 0;  ///< at rank 0
  std::vector<bool> left_;                 ///< at rank 0: who asks no more
  std::mutex mutex_;                       ///< one request, or one round of answers, at a time
  std::uint64_t asked_ = 0;
  bool gone_ = false;
};

}  // namespace

std::unique_ptr<SharedCounter> served_counter(std::shared_ptr<Communicator> comm,
                                              std::chrono::milliseconds limit, std::string why) {
  return std::make_unique<ServedCounter>(std::move(comm), limit, std::move(why));
}

}  // namespace forebay
