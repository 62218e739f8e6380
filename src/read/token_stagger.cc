#include "read/token_stagger.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "comm/messages.hpp"
#include "core/log.hpp"
#include "forebay/error.hpp"

namespace forebay {
namespace {

struct Token {
  enum Kind : std::uint64_t { kToken, kLeft };
  std::uint64_t kind = kToken;
  std::uint64_t turn = 0;  ///< in which the receiver may read
};

Token parse(std::span<const std::byte> message) {
  const auto token = value_in<Token>(message, "turns");
  if (token.kind > Token::kLeft) {
    throw Error(ErrorKind::communication, "what came from a root is no token",
                "this is a fault of Forebay: please report it");
  }
  return token;
}

}  // namespace

TokenRing TokenRing::of(int root, int roots, int group) {
  const int label = root % group;
  const int last = label + (roots - 1 - label) / group * group;
  return {.before = root == label ? last : root - group,
          .after = root == last ? label : root + group,
          .first = root == label,
          .last = root == last};
}

TokenStagger::TokenStagger(std::shared_ptr<Communicator> comm, const StaggerOptions& options)
    : comm_(std::move(comm)), options_(options) {
  comm_->carry_messages();
  restart(options.group, options.end_turn);
}

TokenStagger::~TokenStagger() {
  try {
    leave();
  } catch (const Error& error) {
    log(LogLevel::warning, "other roots may wait for a token: {}", error.what());
  }
}

void TokenStagger::restart(int group, std::uint64_t end_turn) {
  options_.group = std::clamp(group, 1, comm_->size());
  options_.end_turn = end_turn;
  ring_ = TokenRing::of(comm_->rank(), comm_->size(), options_.group);
  started_ = false;
  predecessor_left_ = false;
  successor_left_ = false;
}

bool TokenStagger::acquire(std::uint64_t turn, const GiveUp& give_up) {
  if (turn_ && turn != *turn_ + 1) {
    throw Error(ErrorKind::usage, fmt::format("turn {} cannot follow turn {}", turn, *turn_),
                "ask for every turn, also where there is nothing to read");
  }
  const bool begins = ring_.first && !started_;
  if (!ring_.alone() && !begins && !predecessor_left_ && !receive_token(turn, give_up)) {
    return false;
  }
  // What has just come may be the farewell of a root that gives up for the same reason.
  if (give_up && give_up()) return false;
  turn_ = turn;
  started_ = true;
  holding_ = true;
  return true;
}

bool TokenStagger::receive_token(std::uint64_t turn, const GiveUp& give_up) {
  const auto message =
      receive(*comm_, ring_.before, options_.limit, give_up,
              fmt::format("root {} to pass its token for turn {}", ring_.before, turn));
  if (!message) return false;
  const Token token = parse(*message);
  if (token.kind == Token::kLeft) {
    predecessor_left_ = true;
    if (ring_.before == ring_.after) successor_left_ = true;
  } else if (token.turn != turn) {
    throw Error(
        ErrorKind::communication,
        fmt::format("root {} is at turn {} and this one at {}", ring_.before, token.turn, turn),
        "this is a fault of Forebay: please report it");
  }
  return true;
}

void TokenStagger::send(int to, std::uint64_t kind, std::uint64_t turn) {
  const Token token{.kind = kind, .turn = turn};
  comm_->send(to, message_of(token));
}

/// Where predecessor and successor are two, only a farewell can come from the latter.
bool TokenStagger::successor_gone() {
  if (!successor_left_ && ring_.before != ring_.after) {
    successor_left_ = comm_->try_receive(ring_.after).has_value();
  }
  return successor_left_;
}

void TokenStagger::release(std::uint64_t) {
  if (!holding_) return;
  holding_ = false;
  const std::uint64_t next = *turn_ + (ring_.last ? 1 : 0);
  if (ring_.alone() || next >= options_.end_turn || successor_gone()) return;
  send(ring_.after, Token::kToken, next);
}

void TokenStagger::leave() {
  if (std::exchange(left_, true) || ring_.alone()) return;
  const bool holding = std::exchange(holding_, false);
  const auto has_to_come = [&](int ahead) {
    return !turn_ || *turn_ + static_cast<std::uint64_t>(ahead) < options_.end_turn;
  };
  // The successor waits for one more token, unless it has had its last one.
  const int next = (holding ? 0 : 1) + (ring_.last ? 1 : 0);
  if (has_to_come(next) && !successor_gone()) send(ring_.after, Token::kLeft, 0);
  if (has_to_come(1) && ring_.before != ring_.after && !predecessor_left_) {
    send(ring_.before, Token::kLeft, 0);
  }
}

void TokenStagger::leave_all_rings() {
  if (std::exchange(left_, true)) return;
  for (int root = 0; root < comm_->size(); ++root) {
    if (root != comm_->rank()) send(root, Token::kLeft, 0);
  }
}

int TokenStagger::at_once() const { return options_.group; }

std::string TokenStagger::describe() const {
  return fmt::format("{} of {} roots read at once, by token", options_.group, comm_->size());
}

}  // namespace forebay
