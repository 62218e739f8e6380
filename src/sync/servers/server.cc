#include "sync/servers/server.hpp"

#include <algorithm>
#include <array>
#include <utility>

namespace forebay {

Server::Server(const ParameterShard& shard, std::size_t number, const Links& links,
               std::vector<float> parameters, std::vector<float> told, UpdateRule rule,
               std::uint64_t staleness, ServerMail& mail)
    : shard_(shard),
      number_(number),
      staleness_(staleness),
      rule_(std::move(rule)),
      mail_(mail),
      parameters_(std::move(parameters)),
      told_(std::move(told)),
      addresses_(links.children),
      sums_(links.children, parameters_.size() + told_.size()) {
  for (const Address& child : links.children) children_.push_back({.address = child});
}

Server::Child& Server::find(const Address& address) {
  return children_[find_child(addresses_, address)];
}

void Server::take(ServerLetter letter) {
  Child& child = find(letter.from());
  switch (letter.head().kind) {
    case ServerLetterKind::push:
      take_push(std::move(letter));
      break;
    case ServerLetterKind::want:
      child.wanted = std::max(child.wanted, letter.head().clock);
      child.waits = true;
      break;
    case ServerLetterKind::leave:
      child.left = true;
      if (staleness_ == 0) sums_.leave(child.address);
      break;
    default:
      return;
  }
  if (staleness_ == 0) update_complete();
  if (std::ranges::all_of(children_, &Child::left)) {
    end();
  } else {
    answer();
  }
}

void Server::take_push(ServerLetter letter) {
  require_length(letter, parameters_.size() + told_.size());
  Child& child = find(letter.from());
  const std::uint64_t clock = child.clock++;
  child.wanted = std::max(child.wanted, child.clock - std::min(child.clock, staleness_));
  child.waits = true;
  if (staleness_ == 0) {
    sums_.add(std::move(letter));
  } else {
    update(std::as_const(letter).numbers(), clock);
  }
}

void Server::update_complete() {
  while (const auto sum = sums_.next()) update(*sum, summed_++);
}

void Server::update(std::span<const float> numbers, std::uint64_t clock) {
  rule_({.first = shard_.first,
         .parameters = parameters_,
         .gradients = numbers.first(parameters_.size()),
         .added = numbers.subspan(parameters_.size()),
         .told = told_,
         .clock = clock});
  ++updates_;
}

std::uint64_t Server::version() const {
  if (staleness_ == 0) return summed_;
  std::uint64_t lowest = UINT64_MAX;
  for (const Child& child : children_) {
    if (!child.left) lowest = std::min(lowest, child.clock);
  }
  return lowest;
}

void Server::answer() {
  const std::uint64_t now = version();
  for (Child& child : children_) {
    if (!child.waits || child.wanted > now) continue;
    child.waits = false;
    send(child.address, ServerLetterKind::parameters, now);
  }
}

void Server::end() {
  std::uint64_t highest = 0;
  for (const Child& child : children_) highest = std::max(highest, child.clock);
  for (Child& child : children_) {
    child = {.address = child.address, .clock = highest, .wanted = highest};
  }
  sums_.begin_again();
  summed_ = highest;
  for (const Child& child : children_) send(child.address, ServerLetterKind::last, highest);
}

void Server::send(const Address& child, ServerLetterKind kind, std::uint64_t clock) {
  const LetterHead head{.kind = kind,
                        .to = child.station,
                        .from_station = Station::server,
                        .shard = static_cast<std::uint32_t>(number_),
                        .clock = clock};
  mail_.send(child.rank, head,
             std::array{std::span<const float>(parameters_), std::span<const float>(told_)});
}

}  // namespace forebay
