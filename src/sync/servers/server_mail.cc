#include "sync/servers/server_mail.hpp"

#include <array>
#include <cstring>
#include <utility>

#include "forebay/error.hpp"

namespace forebay {

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
