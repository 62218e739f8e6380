#include "read/tuned_stagger.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "comm/messages.hpp"
#include "core/clock.hpp"
#include "core/log.hpp"
#include "forebay/error.hpp"

namespace forebay {
namespace {

constexpr std::string_view kAbout = "staggering";

// Holding roots back has to pay, and one turn is noisy: smaller differences are none.
constexpr double kClearly = 1.05;
// Turns that read so much more than any before cannot be compared with these.
constexpr double kLarger = 1.5;

}  // namespace

StaggerTuner::StaggerTuner(int roots, int servers) : best_(roots) {
  if (roots <= 1) return;
  const bool known = servers > 0 && servers < roots;
  const int guess = known ? servers : std::max(1, static_cast<int>(std::lround(std::sqrt(roots))));
  groups_ = {roots, guess};
  if (guess > 1) groups_.push_back(guess / 2);
}

void StaggerTuner::add_turn(std::uint64_t bytes, double seconds) {
  if (settled()) return;
  if (bytes == 0) return stop();  // it was in memory
  // Runs may begin with small windows, and they are no measure of what comes.
  const auto most = static_cast<double>(std::exchange(largest_, std::max(largest_, bytes)));
  if (most > 0 && static_cast<double>(bytes) > kLarger * most) {
    best_ = groups_.front();
    best_rate_ = 0;
    trial_ = 0;
    return;
  }
  const double rate = seconds > 0 ? static_cast<double>(bytes) / seconds : 0;
  const bool slower = rate * kClearly < best_rate_;
  if (rate > best_rate_ * kClearly) {
    best_rate_ = rate;
    best_ = groups_[trial_];
  }
  trial_ = slower ? groups_.size() : trial_ + 1;
}

void StaggerTuner::stop() {
  if (settled()) return;
  best_ = groups_.front();
  trial_ = groups_.size();
}

struct TunedStagger::Report {
  std::uint64_t bytes = 0;
  double seconds = 0;
  std::uint64_t leaves = 0;
};

struct TunedStagger::Choice {
  std::uint64_t group = 0;
  std::uint64_t is_final = 0;
};

TunedStagger::TunedStagger(Communicator& roots, const StaggerOptions& options,
                           ProgressThread* progress)
    : comm_(roots.split(0, roots.rank())),
      options_(options),
      tuner_(roots.size(), options.servers),
      has_left_(static_cast<std::size_t>(roots.size()), false),
      group_(roots.size()) {
  comm_->carry_messages();
  options_.group = roots.size();
  if (options_.by == StaggerBy::token) {
    token_ = std::make_unique<TokenStagger>(roots.split(0, roots.rank()), options_);
  } else {
    ticket_ = std::make_unique<TicketStagger>(roots, options_, progress);
  }
  final_ = tuner_.settled();
}

TunedStagger::~TunedStagger() {
  try {
    leave();
  } catch (const Error& error) {
    log(LogLevel::warning, "other roots may wait for this one: {}", error.what());
  }
}

Stagger& TunedStagger::inner() {
  if (token_) return *token_;
  return *ticket_;
}

bool TunedStagger::acquire(std::uint64_t turn, const GiveUp& give_up) {
  if (to_report_ && !exchange(turn, give_up)) return false;
  if (unlimited()) return true;
  began_ns_ = now_ns();
  return inner().acquire(turn, give_up);
}

void TunedStagger::release(std::uint64_t bytes) {
  if (unlimited()) return;
  inner().release(bytes);
  if (final_ || !std::exchange(begun_, true)) return;
  bytes_ = bytes;
  seconds_ = static_cast<double>(now_ns() - began_ns_) * 1e-9;
  to_report_ = true;
}

bool TunedStagger::exchange(std::uint64_t turn, const GiveUp& give_up) {
  Choice choice;
  if (comm_->rank() == 0) {
    if (!collect(give_up)) return false;
    choice = {.group = static_cast<std::uint64_t>(tuner_.group()),
              .is_final = tuner_.settled() ? 1U : 0U};
    tell_all();
  } else {
    comm_->send(0, message_of(Report{.bytes = bytes_, .seconds = seconds_}));
    const auto message =
        receive(*comm_, 0, options_.limit, give_up, "root 0 to choose how many read at once");
    if (!message) return false;
    choice = value_in<Choice>(*message, kAbout);
  }
  to_report_ = false;
  use(choice, turn);
  return true;
}

/// Root 0: what all have read in the turn that is over. Where one has left, the others must not
/// wait for it, so all of them read at once from now on.
bool TunedStagger::collect(const GiveUp& give_up) {
  std::uint64_t bytes = bytes_;
  double seconds = seconds_;
  for (int root = 1; root < comm_->size(); ++root) {
    const auto message = receive(*comm_, root, options_.limit, give_up,
                                 fmt::format("root {} to tell how fast it reads", root));
    if (!message) return false;
    const auto report = value_in<Report>(*message, kAbout);
    if (report.leaves != 0) has_left_[static_cast<std::size_t>(root)] = true;
    bytes += report.bytes;
    seconds = std::max(seconds, report.seconds);
  }
  tuner_.add_turn(bytes, seconds);
  if (std::ranges::find(has_left_, true) != has_left_.end()) tuner_.stop();
  return true;
}

void TunedStagger::tell_all() {
  const Choice choice{.group = static_cast<std::uint64_t>(tuner_.group()),
                      .is_final = tuner_.settled() ? 1U : 0U};
  for (int root = 1; root < comm_->size(); ++root) {
    if (!has_left_[static_cast<std::size_t>(root)]) comm_->send(root, message_of(choice));
  }
}

void TunedStagger::use(const Choice& choice, std::uint64_t turn) {
  const int group = std::clamp(static_cast<int>(choice.group), 1, comm_->size());
  final_ = choice.is_final != 0;
  group_ = group;
  if (ticket_) ticket_->set_group(group);
  // The rings of a trial end with its turn, so that no token is left over.
  if (token_) token_->restart(group, final_ ? options_.end_turn : turn + 1);
}

void TunedStagger::leave() {
  if (std::exchange(left_, true)) return;
  if (final_ || !token_) {
    inner().leave();
  } else {
    token_->leave_all_rings();
  }
  if (final_) return;
  if (comm_->rank() == 0) {
    tuner_.stop();
    tell_all();
  } else {
    comm_->send(0, message_of(Report{.leaves = 1}));
  }
}

KnownStagger TunedStagger::found() const {
  return final_ ? KnownStagger{.at_once = group_, .roots = comm_->size()} : KnownStagger();
}

std::string TunedStagger::describe() const {
  return fmt::format("{} of {} roots read at once, by {} ({})", group_.load(), comm_->size(),
                     to_string(options_.by), final_ ? "the fastest" : "being tried out");
}

}  // namespace forebay
