#include "loader/state.hpp"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "forebay/error.hpp"
#include "forebay/loader.hpp"

namespace forebay {
namespace {

using Json = nlohmann::ordered_json;

constexpr int kVersion = 1;
// Far above any real run, and low enough that positions computed from them cannot overflow.
constexpr std::uint64_t kMostIterations = std::uint64_t{1} << 40;
constexpr std::uint64_t kLargestBatch = std::uint64_t{1} << 32;
constexpr std::uint64_t kLastPosition = std::uint64_t{1} << 62;

std::uint64_t positions(const std::vector<Segment>& segments) {
  std::uint64_t sum = 0;
  for (const Segment& segment : segments) sum += segment.iterations * segment.batch;
  return sum;
}

[[noreturn]] void throw_out_of_range() {
  throw Error(ErrorKind::usage, "the saved state has numbers out of range",
              "give the text that Loader::state() returned");
}

Segment read_segment(const Json& json) {
  const Segment segment{.ranks = json.at("ranks").get<int>(),
                        .batch = json.at("batch").get<std::uint64_t>(),
                        .iterations = json.at("iterations").get<std::uint64_t>()};
  const bool sound = segment.ranks >= 1 && segment.batch >= 1 && segment.batch <= kLargestBatch &&
                     segment.iterations <= kMostIterations &&
                     segment.iterations <= kLastPosition / segment.batch;
  if (!sound) throw_out_of_range();
  return segment;
}

}  // namespace

std::string write_state(const RunState& state) {
  Json segments = Json::array();
  for (const Segment& segment : state.segments) {
    segments.push_back(
        {{"ranks", segment.ranks}, {"batch", segment.batch}, {"iterations", segment.iterations}});
  }
  const Json json{{"version", kVersion},
                  {"order", "strided"},
                  {"fingerprint", state.fingerprint},
                  {"entries", state.entries},
                  {"coalesce", state.coalesce},
                  {"epoch", positions(state.segments) / state.entries},
                  {"segments", segments}};
  return json.dump();
}

RunState read_state(const std::string& text) {
  try {
    const auto json = Json::parse(text);
    if (json.at("version") != kVersion || json.at("order") != "strided") {
      throw Error(ErrorKind::usage, "the saved state is of a kind that this version does not know",
                  "resume with the version that wrote it");
    }
    RunState state{.fingerprint = json.at("fingerprint"),
                   .coalesce = json.at("coalesce").get<std::uint64_t>(),
                   .entries = json.at("entries").get<std::uint64_t>(),
                   .segments = {}};
    for (const auto& segment : json.at("segments")) {
      state.segments.push_back(read_segment(segment));
      if (positions(state.segments) > kLastPosition) throw_out_of_range();
    }
    return state;
  } catch (const Json::exception& error) {
    throw Error(ErrorKind::usage, fmt::format("this is no saved state: {}", error.what()),
                "give the text that Loader::state() returned");
  }
}

LoaderOptions resume_options(const std::string& text, LoaderOptions options, int ranks) {
  const RunState state = read_state(text);
  options.fingerprint = state.fingerprint;
  options.done = state.segments;
  options.first_iteration = 0;
  if (options.done.empty()) return options;
  const Segment last = options.done.back();
  const bool same = last.ranks == ranks && last.batch == options.batch;
  if (options.coalesce == 0) options.coalesce = state.coalesce;
  if (state.coalesce != options.coalesce) {
    throw Error(ErrorKind::usage,
                fmt::format("the run to resume coalesced {} iterations, this one {}",
                            state.coalesce, options.coalesce),
                fmt::format("give --coalesce {}", state.coalesce));
  }
  if (same) {
    options.done.pop_back();
    options.first_iteration = last.iterations;
  } else if (last.iterations % state.coalesce != 0) {
    // Inside a coalesced window the ranks' shares do not form a prefix of the order.
    throw Error(ErrorKind::unsupported,
                fmt::format("the run to resume stopped inside a window of {} iterations on {} "
                            "ranks with batch {}",
                            state.coalesce, last.ranks, last.batch),
                "resume with the same ranks and batch");
  }
  return options;
}

}  // namespace forebay
