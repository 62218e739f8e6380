#include "sync/servers/proxy.hpp"

#include <algorithm>
#include <array>
#include <utility>

namespace forebay {

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

}  // namespace forebay
