// The strategies, a row each: what a name stands for, and how its samples come into the stage.
//
// A strategy is a row in strategy_table.cc and, where it reads in a way of its own, a file with a
// PieceReader. Whatever is asked for beside it (--locate, --engine, ...) has precedence. Strategy
// is the number of a row.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "forebay/options.hpp"
#include "format/data_set.hpp"
#include "read/piece_reader.hpp"

namespace forebay {

struct PlanReaderParts;
struct ReaderSite;

struct StrategyRow {
  std::string name;
  Locate locate = Locate::automatic;  ///< automatic: as a loader that is told nothing finds them
  ReadEngine engine = ReadEngine::automatic;
  bool coalesce = false;  ///< see ReadSetup::coalesces
  int stagger = kNoStagger;
  bool keeps = false;     ///< what it finds out of a data set stays in the user's cache
  bool baseline = false;  ///< every rank walks for itself, through liblmdb
  /// Makes what fills the stage, out of what the data set was opened with. Empty: its plans are
  /// read in bulk (plan_reader.hpp) or, by `locate`, its records are walked to (walk/).
  std::function<std::unique_ptr<PieceReader>(PlanReaderParts, const ReaderSite&)> make_reader;

  /// Whether samples are found by walking from record to record.
  bool walks() const { return locate == Locate::seek || locate == Locate::handoff; }
};

/// Of a strategy that exists. Thread-safe, as is what follows.
const StrategyRow& strategy_row(Strategy strategy);
/// Throws usage that names the option and all that there are.
Strategy parse_strategy(std::string_view name);
std::vector<std::string> strategy_names();
/// Adds one to this process; a name that exists is usage.
Strategy add_strategy(StrategyRow row);

}  // namespace forebay
