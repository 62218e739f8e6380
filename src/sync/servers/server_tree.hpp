// Who adds up for whom, and who keeps which shard. Pure functions of where ranks are.
//
//   stations of a rank    worker -> [domain proxy] -> [node proxy] -> every server
//
// A node whose ranks are all in one NUMA node has no domain proxies: they would have the same
// children as the node's.
#pragma once

#include <cstddef>
#include <cstdint>
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

}  // namespace forebay
