#include "sync/servers/server_tree.hpp"

#include <gtest/gtest.h>

#include <vector>

namespace forebay {
namespace {

/// Two nodes of four ranks, two NUMA nodes each.
const std::vector<RankPlace> kPlaces{{0, 0}, {0, 0}, {0, 1}, {0, 1},
                                     {4, 0}, {4, 1}, {4, 0}, {4, 1}};

Address parent_of(const ServerTree& tree, int rank, Station station) {
  const auto links = tree.links({rank, station});
  return links && links->parent ? *links->parent : Address{-1, Station::server};
}

TEST(ServerTree, AddsUpByNumaNodeThenByNode) {
  const ServerTree tree(kPlaces, ProxyLevel::numa, 0, 10);
  EXPECT_EQ(parent_of(tree, 1, Station::worker), (Address{0, Station::domain}));
  EXPECT_EQ(parent_of(tree, 3, Station::worker), (Address{2, Station::domain}));
  EXPECT_EQ(parent_of(tree, 6, Station::worker), (Address{4, Station::domain}));
  EXPECT_EQ(parent_of(tree, 5, Station::domain), (Address{4, Station::node}));
  EXPECT_EQ(parent_of(tree, 4, Station::node).rank, -1);
  EXPECT_FALSE(tree.links({1, Station::domain}));
  const auto server = tree.links({4, Station::server});
  ASSERT_TRUE(server);
  EXPECT_EQ(server->children, (std::vector<Address>{{0, Station::node}, {4, Station::node}}));
  EXPECT_EQ(tree.proxies(), 6U);
  EXPECT_EQ(tree.nodes(), 2U);
}

TEST(ServerTree, HasNoProxiesThatWouldAddUpNothing) {
  const ServerTree by_node(kPlaces, ProxyLevel::node, 0, 10);
  EXPECT_EQ(parent_of(by_node, 3, Station::worker), (Address{0, Station::node}));
  EXPECT_EQ(by_node.proxies(), 2U);
  const std::vector<RankPlace> unbound{{0, -1}, {0, -1}, {0, -1}};
  EXPECT_EQ(ServerTree(unbound, ProxyLevel::numa, 0, 10).proxies(), 1U);
  const ServerTree none(kPlaces, ProxyLevel::none, 0, 10);
  EXPECT_EQ(none.proxies(), 0U);
  EXPECT_EQ(none.links({0, Station::server})->children.size(), kPlaces.size());
}

TEST(ServerTree, CutsParametersEvenly) {
  for (const int servers : {0, 1, 3, 8}) {
    for (const std::size_t parameters : {0U, 1U, 7U, 100U}) {
      const ServerTree tree(kPlaces, ProxyLevel::numa, servers, parameters);
      ASSERT_EQ(tree.shards().size(), servers == 0 ? 2U : static_cast<std::size_t>(servers));
      std::size_t next = 0;
      int last = -1;
      for (const ParameterShard& shard : tree.shards()) {
        EXPECT_EQ(shard.first, next);
        EXPECT_LE(shard.count, parameters / tree.shards().size() + 1);
        EXPECT_GT(shard.rank, last);
        next += shard.count;
        last = shard.rank;
      }
      EXPECT_EQ(next, parameters);
    }
  }
}

TEST(ServerTree, WhoSendsIsAPeerOfWhoReceives) {
  for (const ProxyLevel level : {ProxyLevel::none, ProxyLevel::node, ProxyLevel::numa}) {
    const ServerTree tree(kPlaces, level, 3, 10);
    for (int a = 0; a < 8; ++a) {
      for (const int b : tree.peers(a)) {
        const auto back = tree.peers(b);
        EXPECT_NE(std::find(back.begin(), back.end(), a), back.end()) << a << " and " << b;
        EXPECT_NE(a, b);
      }
    }
  }
}

TEST(ProxyLevels, HaveNamesThatAreReadBack) {
  for (const char* name : {"none", "node", "numa"}) {
    EXPECT_EQ(to_string(parse_proxy_level(name)), name);
  }
  EXPECT_THROW(parse_proxy_level("rack"), Error);
}

}  // namespace
}  // namespace forebay
