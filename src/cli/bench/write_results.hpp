// Where results of a benchmark go.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

namespace forebay::bench {

/// To the file at `json_path` if there is one, and as `text` unless standard output has the JSON.
/// Throws io.
void write_results(const nlohmann::ordered_json& json, const std::string& text,
                   const std::string& json_path);

}  // namespace forebay::bench
