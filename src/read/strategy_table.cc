#include "read/strategy_table.hpp"

#include "core/named_rows.hpp"

namespace forebay {
namespace {

/// In the order of Strategy.
NamedRows<StrategyRow, Strategy>& table() {
  static NamedRows<StrategyRow, Strategy> all({
      {.name = "auto",
       .locate = Locate::provenance,
       .coalesce = true,
       .stagger = kMeasureStagger,
       .keeps = true},
      {.name = "lmdb", .locate = Locate::seek, .engine = ReadEngine::mmap, .baseline = true},
      {.name = "lmm", .locate = Locate::seek, .engine = ReadEngine::mmap},
      {.name = "lmm-dm", .locate = Locate::handoff, .engine = ReadEngine::mmap},
      {.name = "lmm-dio", .locate = Locate::scatter, .engine = ReadEngine::pread},
      {.name = "lmm-dio-prov", .locate = Locate::provenance, .engine = ReadEngine::pread},
      {.name = "lmm-dio-prov-coal",
       .locate = Locate::provenance,
       .engine = ReadEngine::pread,
       .coalesce = true},
      {.name = "lmm-dio-prov-coal-stag",
       .locate = Locate::provenance,
       .engine = ReadEngine::pread,
       .coalesce = true,
       .stagger = kMeasureStagger},
  });
  return all;
}

}  // namespace

const StrategyRow& strategy_row(Strategy strategy) { return table().at(strategy); }

Strategy parse_strategy(std::string_view name) {
  if (const auto strategy = table().find(name)) return *strategy;
  throw Error(ErrorKind::usage, fmt::format("'{}' is no value of option strategy", name),
              fmt::format("choose one of: {}", fmt::join(strategy_names(), ", ")));
}

std::vector<std::string> strategy_names() {
  return table().names([](const StrategyRow&) { return true; });
}

Strategy add_strategy(StrategyRow row) { return table().add(std::move(row)); }

std::string_view to_string(Strategy strategy) { return strategy_row(strategy).name; }

}  // namespace forebay
