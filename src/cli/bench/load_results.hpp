// What `forebay bench load` found, for machines and for people.
//
//   seconds      a run, of the slowest rank      computing    of a rank, on average
//   first        waiting for the first batch     exposed      for all others; its share of seconds
//   read         of a rank's reading thread      rate         of all ranks together
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "cli/bench/load_bench.hpp"

namespace forebay::bench {

/// Everything: options, every run with the figures of every rank, the summary.
nlohmann::ordered_json to_json(const LoadResults& results);

/// Tables. Takes what to_json() returned.
std::string load_table(const nlohmann::ordered_json& results);

}  // namespace forebay::bench
