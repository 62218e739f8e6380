#include "sync/servers/server.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

#include "forebay/error.hpp"

namespace forebay {
namespace {

constexpr const char* kSameVersion = "start all ranks with the same version of Forebay";

void add_to(std::span<float> sum, std::span<const float> more) {
  for (std::size_t i = 0; i < sum.size(); ++i) sum[i] += more[i];
}

}  // namespace

std::size_t find_child(std::span<const Address> children, const Address& child) {
  const auto found = std::ranges::find(children, child);
  if (found != children.end()) return static_cast<std::size_t>(found - children.begin());
  throw Error(ErrorKind::communication,
              fmt::format("rank {} sent gradients to a rank that does not serve it", child.rank),
              kSameVersion);
}

void require_length(const ServerLetter& letter, std::size_t length) {
  if (letter.numbers().size() == length) return;
  throw Error(ErrorKind::communication,
              fmt::format("rank {} sent {} numbers where {} were expected", letter.from().rank,
                          letter.numbers().size(), length),
              kSameVersion);
}

ClockedSum::ClockedSum(std::vector<Address> children, std::size_t length) : length_(length) {
  for (const Address& child : children) children_.push_back({.address = child, .letters = {}});
}

ClockedSum::Child& ClockedSum::find(const Address& address) {
  const auto found = std::ranges::find(children_, address, &Child::address);
  if (found == children_.end()) find_child({}, address);
  return *found;
}

void ClockedSum::add(ServerLetter letter) {
  require_length(letter, length_);
  find(letter.from()).letters.push_back(std::move(letter));
}

void ClockedSum::leave(const Address& child) { find(child).left = true; }

std::optional<std::span<const float>> ClockedSum::next() {
  bool any = false;
  for (const Child& child : children_) {
    if (child.letters.empty() && !child.left) return std::nullopt;
    any = any || !child.letters.empty();
  }
  if (!any) return std::nullopt;
  sum_.reset();
  for (Child& child : children_) {
    if (child.letters.empty()) continue;
    if (!sum_) {
      sum_ = std::move(child.letters.front());
    } else {
      add_to(sum_->numbers(), std::as_const(child.letters.front()).numbers());
    }
    child.letters.pop_front();
  }
  return std::as_const(*sum_).numbers();
}

bool ClockedSum::all_left() const {
  return std::ranges::all_of(children_, [](const Child& child) { return child.left; });
}

void ClockedSum::begin_again() {
  for (Child& child : children_) child.left = false;
}

Proxy::Proxy(Station station, const Links& links, std::size_t parameters, std::size_t told,
             ServerMail& mail, const ServerTree& tree)
    : station_(station),
      children_(links.children),
      parameters_(parameters),
      shards_(tree.shards().size()),
      mail_(mail),
      upstream_(mail, tree, station, links.parent),
      sums_(links.children, parameters + told) {}

void Proxy::take(ServerLetter letter) {
  switch (letter.head().kind) {
    case ServerLetterKind::push:
      sums_.add(std::move(letter));
      return hand_up();
    case ServerLetterKind::leave:
      sums_.leave(letter.from());
      return hand_up();
    case ServerLetterKind::want:
      if (letter.head().clock <= wanted_) return;
      wanted_ = letter.head().clock;
      return upstream_.want(wanted_);
    case ServerLetterKind::parameters:
    case ServerLetterKind::last:
      return hand_down(letter);
  }
}

void Proxy::hand_up() {
  while (const auto sum = sums_.next()) {
    upstream_.push(clock_++, sum->first(parameters_), sum->subspan(parameters_));
  }
  if (sums_.all_left()) upstream_.leave();
}

// Those below begin again when they have all shards, and so when this has.
void Proxy::hand_down(const ServerLetter& letter) {
  LetterHead head = letter.head();
  if (head.kind == ServerLetterKind::last && ++last_ == shards_) {
    last_ = 0;
    clock_ = head.clock;
    wanted_ = head.clock;
    sums_.begin_again();
  }
  head.from_station = station_;
  for (const Address& child : children_) {
    head.to = child.station;
    mail_.send(child.rank, head, std::array{letter.numbers()});
  }
}

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

Stations::Stations(int rank, std::span<const float> parameters, std::span<const float> told,
                   UpdateRule rule, std::uint64_t staleness, ServerMail& mail,
                   const ServerTree& tree) {
  for (const Station station : {Station::domain, Station::node}) {
    if (const auto links = tree.links({rank, station})) {
      proxies_.try_emplace(station, station, *links, parameters.size(), told.size(), mail, tree);
    }
  }
  const auto number = tree.shard_of(rank);
  if (!number) return;
  const ParameterShard& shard = tree.shards()[*number];
  const auto mine = parameters.subspan(shard.first, shard.count);
  server_.emplace(shard, *number, *tree.links({rank, Station::server}),
                  std::vector<float>(mine.begin(), mine.end()),
                  std::vector<float>(told.begin(), told.end()), std::move(rule), staleness, mail);
}

void Stations::take(ServerLetter letter) {
  const Station to = letter.head().to;
  if (to == Station::server && server_) return server_->take(std::move(letter));
  const auto proxy = proxies_.find(to);
  if (proxy != proxies_.end()) return proxy->second.take(std::move(letter));
  throw Error(
      ErrorKind::communication,
      fmt::format("rank {} sent a message for which there is nobody here", letter.from().rank),
      kSameVersion);
}

}  // namespace forebay
