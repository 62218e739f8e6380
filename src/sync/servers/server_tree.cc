#include "sync/servers/server_tree.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <set>
#include <utility>

#include "forebay/error.hpp"

namespace forebay {

ServerTree::ServerTree(std::span<const RankPlace> places, ProxyLevel level, int servers,
                       std::size_t parameters)
    : places_(places.begin(), places.end()) {
  for (int rank = 0; rank < static_cast<int>(places_.size()); ++rank) {
    add({rank, Station::worker});
  }
  for (int rank = 0; rank < static_cast<int>(places_.size()); ++rank) {
    if (level == ProxyLevel::none) {
      tops_.push_back({rank, Station::worker});
    } else if (places_[static_cast<std::size_t>(rank)].node == rank) {
      build_node(rank, level);
    }
  }
  cut(servers, parameters);
  for (const ParameterShard& shard : shards_) {
    add({shard.rank, Station::server}).children = tops_;
  }
}

Links& ServerTree::add(const Address& station) {
  const auto found = std::ranges::find(stations_, station, &std::pair<Address, Links>::first);
  if (found != stations_.end()) return found->second;
  return stations_.emplace_back(station, Links{}).second;
}

void ServerTree::connect(const Address& child, const Address& parent) {
  add(child).parent = parent;
  add(parent).children.push_back(child);
}

void ServerTree::build_node(int node, ProxyLevel level) {
  std::vector<int> ranks;
  std::set<int> domains;
  for (int rank = node; rank < static_cast<int>(places_.size()); ++rank) {
    const RankPlace& place = places_[static_cast<std::size_t>(rank)];
    if (place.node != node) continue;
    ranks.push_back(rank);
    domains.insert(place.domain);
  }
  const Address proxy{node, Station::node};
  tops_.push_back(proxy);
  const bool by_domain = level == ProxyLevel::numa && domains.size() > 1;
  std::vector<Address> of_domain(domains.size(), {-1, Station::domain});
  for (const int rank : ranks) {
    const Address worker{rank, Station::worker};
    if (!by_domain) {
      connect(worker, proxy);
      continue;
    }
    const auto number = static_cast<std::size_t>(std::distance(
        domains.begin(), domains.find(places_[static_cast<std::size_t>(rank)].domain)));
    Address& domain = of_domain[number];
    if (domain.rank < 0) {
      domain.rank = rank;
      connect(domain, proxy);
    }
    connect(worker, domain);
  }
}

void ServerTree::cut(int servers, std::size_t parameters) {
  std::vector<int> ranks;
  const auto size = static_cast<int>(places_.size());
  for (int rank = 0; rank < size && servers == 0; ++rank) {
    if (places_[static_cast<std::size_t>(rank)].node == rank) ranks.push_back(rank);
  }
  for (int server = 0; server < servers; ++server) {
    ranks.push_back(static_cast<int>(std::int64_t{server} * size / servers));
  }
  for (std::size_t i = 0; i < ranks.size(); ++i) {
    const std::size_t first =
        parameters / ranks.size() * i + std::min(i, parameters % ranks.size());
    const std::size_t count = parameters / ranks.size() + (i < parameters % ranks.size() ? 1 : 0);
    shards_.push_back({.rank = ranks[i], .first = first, .count = count});
  }
}

std::optional<Links> ServerTree::links(Address station) const {
  const auto found = std::ranges::find(stations_, station, &std::pair<Address, Links>::first);
  if (found == stations_.end()) return std::nullopt;
  return found->second;
}

std::optional<std::size_t> ServerTree::shard_of(int rank) const {
  const auto found = std::ranges::find(shards_, rank, &ParameterShard::rank);
  if (found == shards_.end()) return std::nullopt;
  return static_cast<std::size_t>(found - shards_.begin());
}

bool ServerTree::same_node(int a, int b) const {
  return places_[static_cast<std::size_t>(a)].node == places_[static_cast<std::size_t>(b)].node;
}

std::vector<int> ServerTree::peers(int rank) const {
  std::set<int> ranks;
  const bool top = std::ranges::find(tops_, rank, &Address::rank) != tops_.end();
  if (top) {
    for (const ParameterShard& shard : shards_) ranks.insert(shard.rank);
  }
  for (const auto& [station, links] : stations_) {
    if (station.rank != rank) continue;
    if (links.parent) ranks.insert(links.parent->rank);
    for (const Address& child : links.children) ranks.insert(child.rank);
  }
  ranks.erase(rank);
  return {ranks.begin(), ranks.end()};
}

std::size_t ServerTree::nodes() const {
  std::set<int> nodes;
  for (const RankPlace& place : places_) nodes.insert(place.node);
  return nodes.size();
}

std::size_t ServerTree::proxies() const {
  return static_cast<std::size_t>(std::ranges::count_if(stations_, [](const auto& station) {
    return station.first.station == Station::domain || station.first.station == Station::node;
  }));
}

ServerLetter::ServerLetter(int from, std::vector<std::byte> message)
    : from_(from), message_(std::move(message)) {
  if (message_.size() < sizeof head_ || (message_.size() - sizeof head_) % sizeof(float) != 0) {
    throw Error(ErrorKind::communication, "a message of another rank is cut off",
                "start all ranks with the same version of Forebay");
  }
  std::memcpy(&head_, message_.data(), sizeof head_);
}

std::span<const float> ServerLetter::numbers() const {
  return {reinterpret_cast<const float*>(message_.data() + sizeof head_),
          (message_.size() - sizeof head_) / sizeof(float)};
}

std::span<float> ServerLetter::numbers() {
  return {reinterpret_cast<float*>(message_.data() + sizeof head_),
          (message_.size() - sizeof head_) / sizeof(float)};
}

ServerMail::ServerMail(std::shared_ptr<Communicator> comm, const ServerTree& tree)
    : comm_(std::move(comm)), tree_(tree), peers_(tree.peers(comm_->rank())) {
  comm_->carry_messages();
}

void ServerMail::send(int to, const LetterHead& head,
                      std::span<const std::span<const float>> parts) {
  std::size_t bytes = sizeof head;
  for (const auto part : parts) bytes += part.size_bytes();
  std::vector<std::byte> message(bytes);
  std::memcpy(message.data(), &head, sizeof head);
  std::size_t at = sizeof head;
  for (const auto part : parts) {
    if (!part.empty()) std::memcpy(message.data() + at, part.data(), part.size_bytes());
    at += part.size_bytes();
  }
  {
    const std::lock_guard lock(mutex_);
    (tree_.same_node(rank(), to) ? near_bytes_ : far_bytes_) += bytes;
    if (to == rank()) return own_.push_back(std::move(message));
  }
  comm_->send(to, message);
}

std::optional<ServerLetter> ServerMail::receive_own() {
  const std::lock_guard lock(mutex_);
  if (own_.empty()) return std::nullopt;
  ServerLetter letter(rank(), std::move(own_.front()));
  own_.pop_front();
  return letter;
}

// Everybody in turn, so that no rank that sends much keeps others waiting.
std::optional<ServerLetter> ServerMail::receive() {
  if (auto letter = receive_own()) return letter;
  for (std::size_t i = 0; i < peers_.size(); ++i) {
    const int from = peers_[next_peer_];
    next_peer_ = (next_peer_ + 1) % peers_.size();
    if (auto message = comm_->try_receive(from)) return ServerLetter(from, std::move(*message));
  }
  return std::nullopt;
}

std::uint64_t ServerMail::near_bytes() const {
  const std::lock_guard lock(mutex_);
  return near_bytes_;
}

std::uint64_t ServerMail::far_bytes() const {
  const std::lock_guard lock(mutex_);
  return far_bytes_;
}

Upstream::Upstream(ServerMail& mail, const ServerTree& tree, Station station,
                   std::optional<Address> parent)
    : mail_(mail), shards_(tree.shards()), station_(station), parent_(parent) {}

void Upstream::push(std::uint64_t clock, std::span<const float> gradients,
                    std::span<const float> added) {
  LetterHead head{.kind = ServerLetterKind::push, .from_station = station_, .clock = clock};
  if (parent_) {
    head.to = parent_->station;
    return mail_.send(parent_->rank, head, std::array{gradients, added});
  }
  head.to = Station::server;
  for (const ParameterShard& shard : shards_) {
    mail_.send(shard.rank, head, std::array{gradients.subspan(shard.first, shard.count), added});
  }
}

void Upstream::want(std::uint64_t version) { tell(ServerLetterKind::want, version); }
void Upstream::leave() { tell(ServerLetterKind::leave, 0); }

void Upstream::tell(ServerLetterKind kind, std::uint64_t clock) {
  LetterHead head{.kind = kind, .from_station = station_, .clock = clock};
  if (parent_) {
    head.to = parent_->station;
    return mail_.send(parent_->rank, head);
  }
  head.to = Station::server;
  for (const ParameterShard& shard : shards_) mail_.send(shard.rank, head);
}

}  // namespace forebay
