#include "read/ticket_stagger.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <thread>
#include <utility>

#include "core/clock.hpp"
#include "core/log.hpp"
#include "forebay/error.hpp"

namespace forebay {
namespace {

using std::chrono::microseconds;
using std::chrono::steady_clock;

constexpr microseconds kShortestRest{200};
constexpr microseconds kLongestRest{20000};

/// How long to rest before looking again, from how fast tickets have been finished so far.
class Pace {
 public:
  microseconds rest(std::uint64_t finished, std::uint64_t ahead) {
    const auto now = steady_clock::now();
    if (looks_++ == 0) {
      first_ = finished;
      begin_ = now;
    }
    if (finished == first_)
      return std::min(kShortestRest * (1 << std::min(looks_, 7)), kLongestRest);
    const auto each = (now - begin_) / (finished - first_);
    // Half of the expected time, so that what comes early is seen soon.
    return std::clamp(std::chrono::duration_cast<microseconds>(each * ahead / 2), kShortestRest,
                      kLongestRest);
  }

 private:
  int looks_ = 0;
  std::uint64_t first_ = 0;
  steady_clock::time_point begin_;
};

}  // namespace

TicketStagger::TicketStagger(Communicator& roots, const StaggerOptions& options,
                             ProgressThread* progress)
    : options_(options),
      roots_(roots.size()),
      drawn_(roots.share_counter()),
      finished_(roots.share_counter()) {
  if (progress == nullptr || roots.rank() != 0) return;
  const auto serve = [progress](SharedCounter& counter) {
    return counter.needs_serving() ? progress->add([&counter] { return counter.serve(); })
                                   : ProgressThread::Registration();
  };
  serve_drawn_ = serve(*drawn_);
  serve_finished_ = serve(*finished_);
}

TicketStagger::~TicketStagger() {
  try {
    leave();
  } catch (const Error& error) {
    log(LogLevel::warning, "other roots may wait for their turn to read: {}", error.what());
  }
}

bool TicketStagger::acquire(std::uint64_t, const GiveUp& give_up) {
  if (free_) return true;
  const auto ticket = drawn_->fetch_add(1, give_up);
  if (ticket) return holding_ = wait_for(*ticket, give_up);
  if (give_up && give_up()) {
    finished_->add(1);  // the ticket that nobody has seen
    return false;
  }
  return free_ = true;
}

bool TicketStagger::wait_for(std::uint64_t ticket, const GiveUp& give_up) {
  WaitedTime waited;
  const auto group = static_cast<std::uint64_t>(options_.group);
  Pace pace;
  for (;;) {
    const auto finished = finished_->load(give_up);
    // In this order: where all give up, tickets that were drawn in vain let nobody in.
    if (give_up && give_up()) break;
    if (!finished) return free_ = true;
    if (ticket < *finished + group) return true;
    waited.step();
    if (waited.total() >= options_.limit) {
      finished_->add(1);
      throw Error(
          ErrorKind::communication,
          fmt::format("waited {} s for {} roots that read before",
                      std::chrono::duration_cast<std::chrono::seconds>(options_.limit).count(),
                      ticket - *finished),
          "look for a rank that hangs, or raise --timeout");
    }
    rest(pace.rest(*finished, ticket - *finished - group + 1), give_up);
  }
  finished_->add(1);
  return false;
}

/// In slices, as rank 0 answers the others meanwhile.
void TicketStagger::rest(microseconds length, const GiveUp& give_up) {
  constexpr microseconds kSlice{1000};
  const auto end = steady_clock::now() + length;
  for (auto now = steady_clock::now(); now < end; now = steady_clock::now()) {
    if (give_up && give_up()) return;
    drawn_->serve();
    finished_->serve();
    const auto left = std::chrono::duration_cast<microseconds>(end - now);
    std::this_thread::sleep_for(drawn_->needs_serving() ? std::min(left, kSlice) : left);
  }
}

void TicketStagger::release(std::uint64_t) {
  if (std::exchange(holding_, false)) finished_->add(1);
}

void TicketStagger::leave() { release(0); }

int TicketStagger::at_once() const { return options_.group; }

std::string TicketStagger::describe() const {
  return fmt::format("{} of {} roots read at once, by ticket ({})", options_.group, roots_,
                     finished_->describe());
}

}  // namespace forebay
