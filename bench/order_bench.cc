// What orders cost: nanoseconds a draw, for each kind, and a permutation alone.
#include <benchmark/benchmark.h>

#include <cstdint>
#include <memory>
#include <numeric>
#include <vector>

#include "core/permutation.hpp"
#include "forebay/epoch_order.hpp"

namespace forebay {
namespace {

void permutation(benchmark::State& state) {
  const Permutation order(static_cast<std::uint64_t>(state.range(0)), 1);
  std::uint64_t number = 0;
  for (auto unused : state) {
    benchmark::DoNotOptimize(order(number));
    if (++number == order.size()) number = 0;
  }
}
BENCHMARK(permutation)->Arg(1000)->Arg(60'000)->Arg(std::int64_t{1} << 40);

OrderOptions options_of(OrderName kind) {
  OrderOptions options{.order = kind, .entries = 10'000'000, .ranks = 64, .batch = 4096};
  options.group = kind == OrderName::grouped || kind == OrderName::in_memory ? 1000 : 0;
  options.ratio = 0.25;
  if (kind == OrderName::listed) {
    auto list = std::make_shared<std::vector<std::uint64_t>>(options.entries);
    std::iota(list->begin(), list->end(), 0);
    options.ids = std::move(list);
  }
  return options;
}

void draw_in_turn(benchmark::State& state, const EpochOrder& order) {
  std::uint64_t draw = 0;
  const std::uint64_t draws = order.draws(1);
  for (auto unused : state) {
    benchmark::DoNotOptimize(order.draw(1, draw));
    if (++draw == draws) draw = 0;
  }
}

void draw(benchmark::State& state, OrderName kind) {
  draw_in_turn(state, EpochOrder(options_of(kind), 1));
}
BENCHMARK_CAPTURE(draw, grouped, OrderName::grouped);
BENCHMARK_CAPTURE(draw, shuffled, OrderName::shuffled);
BENCHMARK_CAPTURE(draw, in_memory, OrderName::in_memory);
BENCHMARK_CAPTURE(draw, listed, OrderName::listed);

void draw_resumed(benchmark::State& state) {
  OrderOptions options = options_of(OrderName::grouped);
  const std::vector<Segment> done{{64, 4096, 500}, {32, 4096, 500}, {48, 4096, 100}};
  draw_in_turn(state, EpochOrder(options, 1, done));
}
BENCHMARK(draw_resumed);

void place(benchmark::State& state) {
  const EpochOrder order(options_of(OrderName::in_memory), 1);
  std::uint64_t draw = 0;
  for (auto unused : state) benchmark::DoNotOptimize(order.place(1, draw++ % order.draws(1)));
}
BENCHMARK(place);

}  // namespace
}  // namespace forebay

BENCHMARK_MAIN();
