// The figures of `forebay bench read`, for programs and for people.
//
// Ratios to the plain limit compare a run with the best plain run of the same repetition:
//
//   delivered_over_plain    bytes of values handed to the consumers, over bytes of the file that
//                           plain preads moved, both a second. The useful share of the file is its
//                           ceiling where everything has to be read.
//   file_bytes_over_plain   the same with the values' part of the file in place of the values:
//                           pages, headers and padding count as delivered. 1 means that reading is
//                           as fast as the file system.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "cli/bench/read_bench.hpp"

namespace forebay::bench {

/// Everything: options, data set, every run with the statistics of every rank, the summary.
nlohmann::ordered_json to_json(const ReadResults& results);

/// Tables, with what they mean. Takes what to_json() returned.
std::string to_text(const nlohmann::ordered_json& results);

}  // namespace forebay::bench
