// Who adds up for whom, and who keeps which shard. Pure functions of where ranks are.
//
//   stations of a rank    worker -> [domain proxy] -> [node proxy] -> every server
//
// A node whose ranks are all in one NUMA node has no domain proxies: they would have the same
// children as the node's.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <vector>

#include "forebay/parameter_server.hpp"

namespace forebay {

/// What a rank is at one place of the tree.
enum class Station : std::uint32_t { worker, domain, node, server };

struct Address {
  int rank = 0;
  Station station = Station::worker;
  bool operator==(const Address&) const = default;
};

/// Where a rank runs. A plain value, so that ranks can exchange it as bytes.
struct RankPlace {
  int node = 0;     ///< first rank of its node
  int domain = -1;  ///< its NUMA node; -1: it may run on several
};

/// A station's neighbours. Whoever has no parent talks to all servers.
struct Links {
  std::optional<Address> parent;
  std::vector<Address> children;  ///< in the order of ranks
};

class ServerTree {
 public:
  /// `servers` as in ParameterServerOptions, already checked.
  ServerTree(std::span<const RankPlace> places, ProxyLevel level, int servers,
             std::size_t parameters);

  /// Nothing where the rank is no such thing.
  std::optional<Links> links(Address station) const;
  std::span<const ParameterShard> shards() const { return shards_; }
  /// The number of the rank's shard.
  std::optional<std::size_t> shard_of(int rank) const;
  bool same_node(int a, int b) const;
  /// Ranks that ever send something to `rank`, without itself.
  std::vector<int> peers(int rank) const;
  std::size_t nodes() const;
  std::size_t proxies() const;

 private:
  void connect(const Address& child, const Address& parent);
  Links& add(const Address& station);
  void build_node(int node, ProxyLevel level);
  void cut(int servers, std::size_t parameters);

  std::vector<RankPlace> places_;
  std::vector<std::pair<Address, Links>> stations_;
  std::vector<Address> tops_;  ///< who talks to the servers
  std::vector<ParameterShard> shards_;
};

// Messages between the stations of a ServerTree.
//
//   push         numbers of one clock: sums of all below the sender          up
//   want         parameters of at least this version                         up
//   leave        nobody below the sender has more steps                      up
//   parameters   a shard of this version, and what is told with it           down
//   last         the same when all have left; `clock` is where clocks go on   down
//
//   offset  bytes   content
//   0       32      LetterHead
//   32      4 * n   floats
//
// What a rank sends to itself takes no way through MPI.

enum class ServerLetterKind : std::uint32_t { push, want, leave, parameters, last };

struct LetterHead {
  ServerLetterKind kind = ServerLetterKind::push;
  Station to = Station::worker;
  Station from_station = Station::worker;
  std::uint32_t shard = 0;
  std::uint64_t clock = 0;
  std::uint64_t unused = 0;
};
static_assert(sizeof(LetterHead) == 32 && sizeof(LetterHead) % alignof(float) == 0);

class ServerLetter {
 public:
  /// Throws communication for a message that is none.
  ServerLetter(int from, std::vector<std::byte> message);

  const LetterHead& head() const { return head_; }
  Address from() const { return {from_, head_.from_station}; }
  std::span<const float> numbers() const;
  std::span<float> numbers();

 private:
  int from_;
  LetterHead head_;
  std::vector<std::byte> message_;
};

/// Thread-safe.
class ServerMail {
 public:
  /// `comm` is for these messages alone.
  ServerMail(std::shared_ptr<Communicator> comm, const ServerTree& tree);

  int rank() const { return comm_->rank(); }
  /// `parts` follow each other behind the head.
  void send(int to, const LetterHead& head, std::span<const std::span<const float>> parts = {});
  /// The next letter, of whomever.
  std::optional<ServerLetter> receive();
  std::uint64_t near_bytes() const;
  std::uint64_t far_bytes() const;

 private:
  std::optional<ServerLetter> receive_own();

  std::shared_ptr<Communicator> comm_;
  const ServerTree& tree_;
  const std::vector<int> peers_;
  std::size_t next_peer_ = 0;  ///< of the thread that receives
  mutable std::mutex mutex_;   ///< of what follows
  std::deque<std::vector<std::byte>> own_;
  std::uint64_t near_bytes_ = 0;
  std::uint64_t far_bytes_ = 0;
};

/// How a worker or a proxy talks to those above it: its parent, or all servers, each of which gets
/// the numbers of its shard and those behind all gradients. Thread-safe.
class Upstream {
 public:
  Upstream(ServerMail& mail, const ServerTree& tree, Station station,
           std::optional<Address> parent);

  /// `gradients` of all parameters.
  void push(std::uint64_t clock, std::span<const float> gradients, std::span<const float> added);
  void want(std::uint64_t version);
  void leave();

 private:
  void tell(ServerLetterKind kind, std::uint64_t clock);

  ServerMail& mail_;
  const std::span<const ParameterShard> shards_;
  const Station station_;
  const std::optional<Address> parent_;
};

}  // namespace forebay
