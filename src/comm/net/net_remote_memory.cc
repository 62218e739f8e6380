// RemoteMemory over TCP.
//
//   ranks of one node    one shared segment of the node, with the part of each of its ranks
//   other nodes          a list of places goes to the owner, whose network thread answers with one
//                        frame for each, straight out of the segment; here each goes straight to
//                        where it is wanted
//
// So the owner's own threads have nothing to do with it: that is the one-sided transport, and there
// is no other.
#include <unistd.h>

#include <algorithm>
#include <deque>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "comm/net/group.hpp"
#include "comm/net/net_communicator.hpp"
#include "comm/posix_shared_memory.hpp"
#include "comm/remote_memory.hpp"
#include "comm/values.hpp"
#include "forebay/error.hpp"

namespace forebay::net {
namespace {

// Places in one request: so many that a network is busy for long, and no request is large.
constexpr std::size_t kMostPlaces = 1024;
// Who waits is woken for the last one, and for one in so many bytes, to see that something comes.
constexpr std::size_t kWakeBytes = std::size_t{1} << 20;

class NetReader final : public RemoteReader {
 public:
  /// `memory`: the group whose ranks answer.
  explicit NetReader(std::shared_ptr<Group> memory) : memory_(std::move(memory)) {}

  void start(std::span<const RemotePiece> pieces) override {
    if (broken_) throw Error(ErrorKind::cancelled, "an earlier read of other ranks' memory failed");
    for (std::size_t first = 0; first < pieces.size();) {
      std::size_t end = first + 1;
      while (end < pieces.size() && pieces[end].owner == pieces[first].owner &&
             end - first < kMostPlaces) {
        ++end;
      }
      ask(pieces.subspan(first, end - first));
      first = end;
    }
  }

  // One after the other, so that each that comes begins a new wait.
  void finish(const WaitPolicy& policy) override {
    try {
      if (policy.interrupt) policy.interrupt();
      for (const Receiving& part : parts_) {
        memory_->wait(policy, "samples of rank " + std::to_string(part.from()),
                      [&] { return part.done(); });
      }
    } catch (...) {
      broken_ = true;
      parts_.clear();
      throw;
    }
    parts_.clear();
  }
  bool serve() override { return false; }
  // What was given up is received elsewhere: see Receiving.
  bool quiet() const override { return true; }

 private:
  /// Pieces of one owner.
  void ask(std::span<const RemotePiece> pieces) {
    const int owner = pieces.front().owner;
    const std::uint64_t tag = memory_->next_tag();
    std::vector<Mesh::ReadPlace> places;
    std::size_t quiet = 0;
    for (const RemotePiece& piece : pieces) {
      if (piece.to.empty()) continue;
      quiet += piece.to.size();
      const bool wakes = &piece == &pieces.back() || quiet >= kWakeBytes;
      if (wakes) quiet = 0;
      places.push_back({piece.offset, piece.to.size()});
      parts_.push_back(memory_->receive(owner, Channel::read_answer, tag, piece.to, wakes));
    }
    memory_->start_send(owner, Channel::read_request, tag, std::as_bytes(std::span(places)));
  }

  std::shared_ptr<Group> memory_;
  std::deque<Receiving> parts_;
  bool broken_ = false;
};

/// Parts begin at pages, so that each lies in the memory of the core that fills it.
std::size_t part_bytes(std::uint64_t bytes) {
  const auto page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
  return (std::max<std::size_t>(bytes, 1) + page - 1) / page * page;
}

class NetRemoteMemory final : public RemoteMemory {
 public:
  NetRemoteMemory(std::shared_ptr<Group> group, Communicator& comm, Communicator& node,
                  std::size_t bytes)
      : group_(std::move(group)),
        several_nodes_(node.size() < comm.size()),
        sizes_(gather_all(comm, std::uint64_t{bytes})),
        direct_(sizes_.size()) {
    share_on_node(comm, node);
    group_->mesh()->serve(group_->number(), {.bytes = mine_, .owner = shared_});
    comm.barrier();  // nobody asks before all serve
  }

  std::span<std::byte> mine() const override { return mine_; }
  void reserve(std::size_t offset, std::size_t size) override {
    shared_->reserve(begin_ + offset, size);
  }
  std::span<const std::byte> direct(int rank) const override {
    return direct_[static_cast<std::size_t>(rank)];
  }
  std::uint64_t bytes(int rank) const override { return sizes_[static_cast<std::size_t>(rank)]; }
  bool several_nodes() const override { return several_nodes_; }
  void publish() override {}  // what a barrier orders is enough
  std::unique_ptr<RemoteReader> make_reader(Transport transport, std::string& why) override {
    if (transport == Transport::one_sided) return std::make_unique<NetReader>(group_);
    why = "over TCP the owner's network thread answers, and there is no second way";
    return nullptr;
  }
  std::string describe() const override { return "shared memory of each node"; }

 private:
  void share_on_node(Communicator& comm, Communicator& node) {
    const auto ranks = gather_all(node, comm.rank());
    std::vector<std::size_t> begins{0};
    for (const int rank : ranks) {
      begins.push_back(begins.back() + part_bytes(sizes_[static_cast<std::size_t>(rank)]));
    }
    collectively(comm, [&] { shared_ = node.share(begins.back(), SharedMemoryKind::posix); });
    begin_ = begins[static_cast<std::size_t>(node.rank())];
    for (std::size_t i = 0; i < ranks.size(); ++i) {
      const auto rank = static_cast<std::size_t>(ranks[i]);
      direct_[rank] = shared_->bytes().subspan(begins[i], sizes_[rank]);
    }
    const std::size_t size = sizes_[static_cast<std::size_t>(comm.rank())];
    mine_ = shared_->bytes().subspan(begin_, size);
    collectively(comm, [&] { shared_->reserve(begin_, std::min(size, kBackedBytes)); });
  }

  std::shared_ptr<Group> group_;
  bool several_nodes_;
  std::vector<std::uint64_t> sizes_;                ///< by rank
  std::vector<std::span<const std::byte>> direct_;  ///< by rank
  std::shared_ptr<SharedMemory> shared_;
  std::size_t begin_ = 0;  ///< of this rank's part of it
  std::span<std::byte> mine_;
};

}  // namespace

std::unique_ptr<RemoteMemory> net_remote_memory(std::shared_ptr<Group> group, Communicator& comm,
                                                Communicator& node, std::size_t bytes) {
  return std::make_unique<NetRemoteMemory>(std::move(group), comm, node, bytes);
}

}  // namespace forebay::net
