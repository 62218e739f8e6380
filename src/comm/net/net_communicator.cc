#include "comm/net/net_communicator.hpp"

#include <algorithm>
#include <tuple>
#include <utility>

#include "comm/common_file.hpp"
#include "comm/messages.hpp"
#include "comm/net/collectives.hpp"
#include "comm/net/node_identity.hpp"
#include "comm/node_groups.hpp"
#include "comm/nonblocking.hpp"
#include "comm/posix_shared_memory.hpp"
#include "comm/remote_memory.hpp"
#include "comm/thread_parts.hpp"
#include "comm/values.hpp"
#include "forebay/error.hpp"

namespace forebay::net {

void NetCommunicator::barrier() { net::barrier(*group_, policy_); }

void NetCommunicator::broadcast(std::span<std::byte> data, int root) {
  net::broadcast(*group_, policy_, data, root);
}

void NetCommunicator::all_gather(std::span<const std::byte> mine, std::span<std::byte> all) {
  net::all_gather(*group_, policy_, mine, all);
}

std::vector<std::vector<std::byte>> NetCommunicator::gather(std::span<const std::byte> mine,
                                                            int root) {
  return net::gather(*group_, policy_, mine, root);
}

void NetCommunicator::all_reduce_sum(std::span<float> values) {
  net::all_reduce_sum(*group_, policy_, values);
}

// The first rank of each part gives it its number.
std::shared_ptr<Group> NetCommunicator::part(int color, int key) {
  struct Member {
    int color = 0;
    int key = 0;
    int rank = 0;
    int in_world = 0;
    std::uint64_t number = 0;
  };
  const Member me{.color = color,
                  .key = key,
                  .rank = rank(),
                  .in_world = group_->in_world(rank()),
                  .number = group_->mesh()->new_communicator()};
  auto members = gather_all(*this, me);
  std::erase_if(members, [color](const Member& one) { return one.color != color; });
  std::ranges::sort(members, {}, [](const Member& one) { return std::tuple(one.key, one.rank); });
  std::vector<int> in_world;
  for (const Member& one : members) in_world.push_back(one.in_world);
  const auto here = std::ranges::find(in_world, me.in_world) - in_world.begin();
  return std::make_shared<Group>(group_->mesh(), std::move(in_world), static_cast<int>(here),
                                 members.front().number);
}

std::shared_ptr<Communicator> NetCommunicator::split(int color, int key) {
  return std::make_shared<NetCommunicator>(part(color, key), policy_);
}

std::shared_ptr<Communicator> NetCommunicator::split_by_node() {
  int ranks_per_node = 0;
  collectively(*this, [&] { ranks_per_node = ranks_per_node_from_environment(); });
  const auto nodes = gather_all(*this, node_identity());
  const auto first = std::ranges::find(nodes, nodes[static_cast<std::size_t>(rank())]);
  const auto node = split(static_cast<int>(first - nodes.begin()), rank());
  return split_into_virtual_nodes(*node, ranks_per_node);
}

std::unique_ptr<SharedMemory> NetCommunicator::share(std::size_t bytes, SharedMemoryKind) {
  return share_posix(*this, bytes);
}

std::unique_ptr<SharedCounter> NetCommunicator::share_counter() {
  return served_counter(split(0, rank()), timeout(), "ranks are connected by TCP");
}

std::unique_ptr<RemoteMemory> NetCommunicator::expose(Communicator& node, std::size_t bytes,
                                                      SharedMemoryKind) {
  return net_remote_memory(own(), *this, node, bytes);
}

std::unique_ptr<CommonFile> NetCommunicator::open_together(const std::string& path) {
  return open_by_threads(split(0, rank()), path);
}

std::unique_ptr<NonblockingCollectives> NetCommunicator::nonblocking() {
  return net_nonblocking(own());
}

// Delivery is not confirmed: one rank that is gone must not keep the others from hearing.
void NetCommunicator::send_notice(int to, std::span<const std::byte> message) {
  if (group_->mesh()->mailbox().is_gone(group_->in_world(to))) return;
  group_->start_send(to, Channel::notice, 0, message);
}

std::optional<std::vector<std::byte>> NetCommunicator::poll_notice() {
  return group_->mesh()->take_notice(group_->number());
}

void NetCommunicator::send(int to, std::span<const std::byte> message) {
  require_sendable(message.size());
  group_->start_send(to, Channel::message, 0, message);
}

std::optional<std::vector<std::byte>> NetCommunicator::try_receive(int from) {
  return group_->take(from, Channel::message);
}

}  // namespace forebay::net
