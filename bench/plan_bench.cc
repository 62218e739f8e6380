// What it costs to plan the transfers of a graph: of the size of the largest that paper 002 tells
// of (table 6.1: 11,128 nodes and 16,956 edges, planned in 1,274 ms there), and around it.
#include <benchmark/benchmark.h>

#include <cstdint>
#include <random>
#include <string>

#include "forebay/graph.hpp"

namespace forebay {
namespace {

/// Like that of a network: a long chain with branches that join again, and a transfer of 4 KB to
/// 4 MB for every `every`-th node.
Graph network(std::size_t nodes, std::size_t edges, std::size_t every) {
  std::mt19937 random(1);
  Graph graph;
  for (std::size_t i = 0; i < nodes; ++i) {
    const bool collective = i % every == every - 1;
    graph.add({.name = "layer" + std::to_string(i / 12) + "/operation" + std::to_string(i),
               .collective = collective,
               .shape = {collective ? std::uint64_t{1024} << (random() % 11) : 1}});
    if (i > 0) graph.connect(i - 1 - (i > 20 ? random() % 3 : 0), i);
  }
  while (graph.edges() < edges) {
    const std::size_t to = 40 + random() % (nodes - 40);
    graph.connect(to - 2 - random() % 38, to);
  }
  return graph;
}

void plan(benchmark::State& state) {
  const auto nodes = static_cast<std::size_t>(state.range(0));
  const auto edges = static_cast<std::size_t>(state.range(1));
  const Graph graph = network(nodes, edges, static_cast<std::size_t>(state.range(2)));
  std::size_t buffers = 0;
  for (auto unused : state) {
    const TransferPlan plan = plan_transfers(graph, {}, std::uint64_t{64} << 20);
    buffers = plan.buffers.size();
    benchmark::DoNotOptimize(buffers);
  }
  state.counters["buffers"] = static_cast<double>(buffers);
}
BENCHMARK(plan)
    ->ArgNames({"nodes", "edges", "every"})
    ->Args({1'000, 1'500, 10})
    ->Args({11'128, 16'956, 50})
    ->Args({11'128, 16'956, 2})
    ->Args({100'000, 150'000, 10})
    ->Unit(benchmark::kMillisecond);

void read_file(benchmark::State& state) {
  const std::string json = to_json({network(11'128, 16'956, 50), {}});
  for (auto unused : state) benchmark::DoNotOptimize(parse_graph(json).graph.edges());
}
BENCHMARK(read_file)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace forebay

BENCHMARK_MAIN();
