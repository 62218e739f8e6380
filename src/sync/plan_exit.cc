#include "sync/plan_exit.hpp"

#include <algorithm>

#include "comm/messages.hpp"

namespace forebay {

PlanExit::PlanExit(PlanMail& mail, std::uint64_t epoch, PlanRun& run, TransferLine& line,
                   TransferLine::Number first, bool is_fallback)
    : mail_(mail), epoch_(epoch), run_(run), line_(line), first_(first) {
  line_.hold();
  MessageWriter writer;
  writer.number(run_.issued());
  writer.number(is_fallback);
  mail_.send_all(LetterKind::leave, epoch_, writer.bytes());
}

void PlanExit::take(const Letter& letter) {
  MessageReader reader(letter.content);
  if (letter.kind == LetterKind::leave) {
    most_ = std::max(most_, reader.number<std::uint64_t>());
    is_fallback_ = reader.number<bool>() || is_fallback_;
    ++left_;
  } else if (letter.kind == LetterKind::neutral) {
    for (const std::uint64_t issue : reader.numbers()) neutral_.insert(issue);
    ++told_;
  }
}

std::optional<std::vector<std::shared_ptr<Request>>> PlanExit::step() {
  if (left_ < static_cast<std::size_t>(mail_.ranks())) return {};
  if (!caught_up_) catch_up();
  if (!all_told() || (most_ > 0 && line_.complete() < first_ + most_)) return {};
  std::vector<TransferLine::Number> without;
  for (const std::uint64_t issue : neutral_) without.push_back(first_ + issue);
  return line_.release(without);
}

void PlanExit::catch_up() {
  std::vector<std::uint64_t> neutral;
  while (run_.issued() < most_) {
    const std::uint64_t issue = run_.issued();
    auto transfer = run_.ready() ? run_.issue() : std::nullopt;
    if (!transfer) {
      transfer = run_.issue_neutral();
      neutral.push_back(issue);
    }
    first_ = line_.start(std::move(*transfer)) - issue;
  }
  caught_up_ = true;
  MessageWriter writer;
  writer.numbers(neutral);
  mail_.send_all(LetterKind::neutral, epoch_, writer.bytes());
}

}  // namespace forebay
