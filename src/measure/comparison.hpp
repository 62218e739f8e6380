// Runs that are compared: what is run, in which order, and the figures that are told of them.
//
//   lmdb      lmm-dio      lmm-dio+engine=uring+depth=32      order=grouped+group=128+buffers=1
//
// A variant is a strategy, and knobs turned on top of it; or knobs alone. Each repetition runs
// every variant once, in an order of its own, which depends on the seed alone: a drift of the
// machine meets all alike.
#pragma once

#include <algorithm>
#include <nlohmann/json_fwd.hpp>
#include <random>
#include <string>
#include <vector>

#include "forebay/options.hpp"

namespace forebay::bench {

struct Variant {
  std::string name;  ///< as written
  LoaderOptions options;
};

/// `words` may hold several variants each, separated by commas; knobs go on top of `base`.
/// Empty: every strategy that this version has. Throws usage for unknown names and for repetitions.
std::vector<Variant> parse_variants(const std::vector<std::string>& words,
                                    const LoaderOptions& base);

/// `runs` in the order that `seed` gives repetition number `repetition`.
template <typename Run>
std::vector<Run> in_turn(std::vector<Run> runs, std::uint64_t seed, int repetition = 0) {
  std::ranges::shuffle(runs, std::mt19937_64(seed + static_cast<std::uint64_t>(repetition)));
  return runs;
}

/// Of runs of one thing, each a JSON object of numbers: {"NAME": {"median": ..., "least": ...,
/// "most": ...}, ...}, in the order of the first run that has NAME.
nlohmann::ordered_json spreads_of(const std::vector<nlohmann::ordered_json>& runs);

/// One of them; `values` is not empty.
nlohmann::ordered_json spread_to_json(std::vector<double> values);

/// "0.52 (0.47-0.55)"; "-" where there is no such figure.
std::string spread_to_text(const nlohmann::ordered_json& row, const char* name, int decimals);

/// 0 where there is no such figure.
double median_of(const nlohmann::ordered_json& row, const char* name);

/// A table of text: the first row is its head.
using Table = std::vector<std::vector<std::string>>;

/// Columns as wide as their widest cell; the first to the left, the others to the right.
std::string to_text(const Table& table);

/// To the file at `json_path` if there is one, and as `text` unless standard output ("-") has the
/// JSON. Throws io.
void write_results(const nlohmann::ordered_json& json, const std::string& text,
                   const std::string& json_path);

}  // namespace forebay::bench
