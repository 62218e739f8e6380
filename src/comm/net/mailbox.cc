#include "comm/net/mailbox.hpp"

#include <algorithm>
#include <utility>

#include "core/copy_values.hpp"
#include "forebay/error.hpp"

namespace forebay::net {

/// That of a communicator; null once it has ended.
Mailbox::Box* Mailbox::box(std::uint64_t communicator) {
  return ended_.contains(communicator) ? nullptr : &boxes_[communicator];
}

std::span<std::byte> Mailbox::begin(int source, const FrameHeader& header, Arrival& arrival) {
  {
    const std::lock_guard lock(mutex_);
    arrival = {};
    if (Box* const box = this->box(header.communicator)) {
      const auto slot = box->slots.find({source, header.port()});
      if (slot != box->slots.end() && !slot->second.posted.empty() &&
          slot->second.posted.front()->to.size() == header.bytes) {
        arrival.posted = slot->second.posted.front();
        slot->second.posted.pop_front();
        if (slot->second.posted.empty()) box->slots.erase(slot);
        return arrival.posted->to;
      }
    }
  }
  arrival.own.resize(header.bytes);
  return arrival.own;
}

void Mailbox::end(int source, const FrameHeader& header, Arrival& arrival) {
  const std::lock_guard lock(mutex_);
  if (arrival.posted != nullptr) return fill(*std::exchange(arrival.posted, nullptr), true);
  Message message = std::exchange(arrival.own, {});
  const bool dropped = std::exchange(arrival.dropped, false);
  Box* const box = dropped ? nullptr : this->box(header.communicator);
  if (box == nullptr) return;
  const Port port = header.port();
  if (port.channel == Channel::notice) {
    box->notices.push_back(std::move(message));
    return changed();
  }
  Slot& slot = box->slots[{source, port}];
  if (slot.posted.empty()) {
    slot.arrived.push_back(std::move(message));
    changed();
  } else {
    Posted& posted = *slot.posted.front();
    slot.posted.pop_front();
    const bool fits = posted.to.size() == message.size();
    if (fits) copy_values(message, posted.to);
    if (slot.posted.empty()) box->slots.erase({source, port});
    fill(posted, fits);
  }
}

/// Whoever posted it may take it away from now on.
void Mailbox::fill(Posted& posted, bool fits) {
  const bool wakes = posted.wakes;
  posted.state.store(fits ? Posted::State::filled : Posted::State::misfit,
                     std::memory_order_release);
  if (wakes) changed();
}

void Mailbox::post(Posted& posted) {
  const std::lock_guard lock(mutex_);
  Box* const box = this->box(posted.port.communicator);
  if (box == nullptr) return;
  const auto slot = box->slots.try_emplace({posted.source, posted.port}).first;
  if (slot->second.arrived.empty()) {
    slot->second.posted.push_back(&posted);
    return;
  }
  const Message message = std::move(slot->second.arrived.front());
  slot->second.arrived.pop_front();
  if (slot->second.arrived.empty()) box->slots.erase(slot);
  const bool fits = posted.to.size() == message.size();
  if (fits) copy_values(message, posted.to);
  posted.state = fits ? Posted::State::filled : Posted::State::misfit;
}

void Mailbox::withdraw(Posted& posted) {
  const std::lock_guard lock(mutex_);
  const auto box = boxes_.find(posted.port.communicator);
  if (box == boxes_.end()) return;
  const auto slot = box->second.slots.find({posted.source, posted.port});
  if (slot == box->second.slots.end()) return;
  slot->second.posted.remove(&posted);
  if (slot->second.posted.empty() && slot->second.arrived.empty()) box->second.slots.erase(slot);
}

std::optional<std::vector<std::byte>> Mailbox::take(int source, const Port& port) {
  const std::lock_guard lock(mutex_);
  const auto box = boxes_.find(port.communicator);
  if (box == boxes_.end()) return std::nullopt;
  const auto slot = box->second.slots.find({source, port});
  if (slot == box->second.slots.end() || slot->second.arrived.empty()) return std::nullopt;
  Message message = std::move(slot->second.arrived.front());
  slot->second.arrived.pop_front();
  if (slot->second.arrived.empty()) box->second.slots.erase(slot);
  return message;
}

std::optional<std::vector<std::byte>> Mailbox::take_notice(std::uint64_t communicator) {
  const std::lock_guard lock(mutex_);
  const auto box = boxes_.find(communicator);
  if (box == boxes_.end() || box->second.notices.empty()) return std::nullopt;
  Message message = std::move(box->second.notices.front());
  box->second.notices.pop_front();
  return message;
}

void Mailbox::serve(std::uint64_t communicator, ServedMemory memory) {
  const std::lock_guard lock(mutex_);
  if (Box* const box = this->box(communicator)) box->memory = std::move(memory);
}

ServedMemory Mailbox::served(std::uint64_t communicator) {
  const std::lock_guard lock(mutex_);
  const auto box = boxes_.find(communicator);
  return box == boxes_.end() ? ServedMemory{} : box->second.memory;
}

void Mailbox::forget(std::uint64_t communicator) {
  const std::lock_guard lock(mutex_);
  boxes_.erase(communicator);
  ended_.insert(communicator);
}

void Mailbox::set_ended(int rank) {
  const std::lock_guard lock(mutex_);
  auto& state = peers_[static_cast<std::size_t>(rank)].state;
  if (state == PeerState::there) state = PeerState::ended;
  changed();
}

void Mailbox::set_gone(int rank, const std::string& how) {
  const std::lock_guard lock(mutex_);
  Peer& peer = peers_[static_cast<std::size_t>(rank)];
  if (peer.state != PeerState::there) return;
  peer.how = how;
  peer.state = PeerState::gone;
  ++gone_;
  changed();
}

void Mailbox::fail_for(int rank) {
  const std::lock_guard lock(mutex_);
  const Peer& peer = peers_[static_cast<std::size_t>(rank)];
  if (peer.state == PeerState::gone) {
    throw Error(ErrorKind::communication, "this rank is gone: " + peer.how,
                "look at the launcher's output and the system log for what ended it",
                {.rank = rank});
  }
  throw Error(ErrorKind::communication, "this rank has ended while others wait for it",
              "let all ranks make the same calls", {.rank = rank});
}

void Mailbox::check(std::span<const int> ranks) {
  if (!any_gone()) return;
  for (const int rank : ranks) {
    if (is_gone(rank)) fail_for(rank);
  }
}

void Mailbox::wake() {
  const std::lock_guard lock(mutex_);
  changed();
}

void Mailbox::changed() {
  changes_.fetch_add(1, std::memory_order_release);
  woken_.notify_all();
}

void Mailbox::sleep(std::uint64_t seen, Clock::time_point until) {
  std::unique_lock lock(mutex_);
  woken_.wait_until(lock, until, [&] { return changes_ != seen; });
}

}  // namespace forebay::net
