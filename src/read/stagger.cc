#include "read/stagger.hpp"

#include <fmt/format.h>

#include <utility>

#include "comm/values.hpp"
#include "core/log.hpp"
#include "forebay/error.hpp"
#include "read/ticket_stagger.hpp"
#include "read/token_stagger.hpp"
#include "read/tuned_stagger.hpp"

namespace forebay {
namespace {

class NoStagger final : public Stagger {
 public:
  explicit NoStagger(int roots, std::string why = {}) : roots_(roots), why_(std::move(why)) {}
  bool acquire(std::uint64_t, const GiveUp&) override { return true; }
  void release(std::uint64_t) override {}
  void leave() override {}
  bool unlimited() const override { return true; }
  int at_once() const override { return roots_; }
  std::string describe() const override {
    return roots_ == 1 ? "one root reads"
                       : fmt::format("all {} roots read at once{}", roots_, why_);
  }

 private:
  int roots_;
  std::string why_;
};

/// `auto` becomes a number where there is nothing to look for; tells why.
std::string settle(Communicator& roots, StaggerOptions& options) {
  share_value(roots, options.turns);
  share_value(roots, options.known);
  share_value(roots, options.servers);
  if (is_of(options.known, roots.size())) {
    options.group = options.known.at_once;
    return " (the fastest before this run was resumed)";
  }
  if (options.turns >= kTurnsWorthLooking) return {};
  options.group = roots.size();
  return fmt::format(" (looking for fewer takes a run of {} windows)", kTurnsWorthLooking);
}

}  // namespace

std::unique_ptr<Stagger> make_stagger(Communicator& roots, const StaggerOptions& wanted,
                                      ProgressThread* progress) {
  StaggerOptions options = wanted;
  if (options.group < 0) {
    throw Error(ErrorKind::usage, fmt::format("{} roots cannot read at once", options.group),
                "give --stagger at least 1");
  }
  std::string why;
  const bool may_take_turns = options.by != StaggerBy::none && roots.size() > 1;
  if (may_take_turns && options.group == StaggerOptions::kAuto) why = settle(roots, options);
  if (!may_take_turns || options.group >= roots.size()) {
    return std::make_unique<NoStagger>(roots.size(), why);
  }
  if (!roots.concurrent()) {
    throw Error(ErrorKind::unsupported, "roots cannot take turns to read without threads in MPI",
                "leave out --stagger, or use an MPI library with MPI_THREAD_MULTIPLE");
  }
  if (options.group == StaggerOptions::kAuto) {
    return std::make_unique<TunedStagger>(roots, options, progress);
  }
  if (options.by == StaggerBy::ticket) {
    return std::make_unique<TicketStagger>(roots, options, progress);
  }
  return std::make_unique<TokenStagger>(roots.split(0, roots.rank()), options);
}

StaggerTurn::~StaggerTurn() {
  try {
    end();
  } catch (const Error& error) {
    log(LogLevel::warning, "other roots may wait for their turn to read: {}", error.what());
  }
}

void StaggerTurn::end() {
  Stagger* const stagger = std::exchange(stagger_, nullptr);
  if (stagger != nullptr) stagger->release(bytes_);
}

}  // namespace forebay
