#include "sync/plan_mail.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "comm/messages.hpp"
#include "forebay/error.hpp"

namespace forebay {
namespace {

constexpr std::size_t kHead = sizeof(LetterKind) + sizeof(std::uint64_t);

Letter open(int from, const std::vector<std::byte>& message) {
  MessageReader reader(message);
  Letter letter{.from = from, .kind = reader.number<LetterKind>()};
  letter.epoch = reader.number<std::uint64_t>();
  letter.content.assign(message.begin() + kHead, message.end());
  return letter;
}

}  // namespace

PlanMail::PlanMail(Communicator& comm, SyncStatistics& statistics)
    : comm_(comm.split(0, comm.rank())), statistics_(statistics) {
  comm_->carry_messages();
}

void PlanMail::send(int to, LetterKind kind, std::uint64_t epoch,
                    std::span<const std::byte> content) {
  if (to == rank()) {
    letters_.push_back({to, kind, epoch, {content.begin(), content.end()}});
    return;
  }
  MessageWriter writer;
  writer.number(kind);
  writer.number(epoch);
  std::vector<std::byte> message = writer.take();
  message.insert(message.end(), content.begin(), content.end());
  comm_->send(to, message);
  ++statistics_.negotiations;
}

void PlanMail::send_all(LetterKind kind, std::uint64_t epoch, std::span<const std::byte> content) {
  for (int to = 0; to < ranks(); ++to) send(to, kind, epoch, content);
}

std::vector<Letter> PlanMail::receive(std::uint64_t epoch) {
  for (int from = 0; from < ranks(); ++from) {
    if (from == rank()) continue;
    while (const auto message = comm_->try_receive(from)) letters_.push_back(open(from, *message));
  }
  std::vector<Letter> now;
  std::deque<Letter> later;
  for (Letter& letter : letters_) {
    if (letter.epoch == epoch) {
      now.push_back(std::move(letter));
    } else if (letter.epoch > epoch) {
      later.push_back(std::move(letter));
    } else if (letter.kind == LetterKind::leave) {
      throw Error(ErrorKind::usage,
                  fmt::format("rank {} started tensors while another graph was taken into use",
                              letter.from),
                  "start nothing during use_graph()");
    }
  }
  letters_ = std::move(later);
  return now;
}

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
