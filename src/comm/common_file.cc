#include "comm/common_file.hpp"

#include <algorithm>
#include <utility>

#include "comm/waiting.hpp"
#include "forebay/error.hpp"

namespace forebay {
namespace {

constexpr std::chrono::hours kNoDeadline{24 * 365};
// For the answer to a rank that leaves: rank 0's progress thread gives it within milliseconds.
constexpr std::chrono::seconds kLongestAnswer{3};

}  // namespace

CommonSteps::CommonSteps(std::shared_ptr<Communicator> comm)
    : comm_(std::move(comm)), ready_(static_cast<std::size_t>(comm_->size()), 0) {
  comm_->carry_messages();
}

bool CommonSteps::meet(const GiveUp& give_up) {
  {
    const std::lock_guard lock(mutex_);
    if (left_) return false;
    ++mine_;
    if (comm_->rank() == 0) {
      ready_[0] = mine_;
      decide();
    } else {
      say(0, Word::ready);
    }
  }
  bool go = false;
  const WaitPolicy policy{.timeout = kNoDeadline};
  Waiting waiting(policy, "other ranks to read with");
  while (!decided(go)) {
    if (give_up && give_up()) {
      leave();
      break;
    }
    waiting.step();
  }
  const WaitPolicy last{.timeout = kLongestAnswer};
  try {
    for (Waiting answer(last, "the last answer"); !decided(go);) answer.step();
  } catch (const Error&) {
    return false;  // rank 0 is gone as well
  }
  return go;
}

bool CommonSteps::decided(bool& go) {
  serve();
  const std::lock_guard lock(mutex_);
  go = taken_ >= mine_;
  return go || ended_;
}

void CommonSteps::leave() {
  const std::lock_guard lock(mutex_);
  if (std::exchange(left_, true)) return;
  if (comm_->rank() == 0) {
    end();
  } else if (!ended_) {
    say(0, Word::leave);
  }
}

bool CommonSteps::serve() {
  const std::lock_guard lock(mutex_);
  bool heard = false;
  const int first = comm_->rank() == 0 ? 1 : 0;
  const int end = comm_->rank() == 0 ? comm_->size() : 1;
  for (int from = first; from < end; ++from) {
    while (const auto message = comm_->try_receive(from)) {
      heard = true;
      if (!message->empty()) hear(from, static_cast<Word>(message->front()));
    }
  }
  return heard;
}

void CommonSteps::hear(int from, Word word) {
  switch (word) {
    case Word::ready:
      ++ready_[static_cast<std::size_t>(from)];
      return decide();
    case Word::leave:
      return end();
    case Word::go:
      ++taken_;
      return;
    case Word::never:
      ended_ = true;
      return;
  }
}

void CommonSteps::decide() {
  if (ended_ || std::ranges::min(ready_) <= taken_) return;
  ++taken_;
  say_to_all(Word::go);
}

void CommonSteps::end() {
  if (std::exchange(ended_, true)) return;
  say_to_all(Word::never);
}

void CommonSteps::say_to_all(Word word) {
  for (int rank = 1; rank < comm_->size(); ++rank) say(rank, word);
}

void CommonSteps::say(int to, Word word) {
  const auto byte = static_cast<std::byte>(word);
  comm_->send(to, {&byte, 1});
}

}  // namespace forebay
