#include "loader/state.hpp"

#include <fmt/format.h>

#include <limits>
#include <nlohmann/json.hpp>

#include "forebay/error.hpp"
#include "forebay/loader.hpp"
#include "loader/shard.hpp"
#include "order/order_table.hpp"

namespace forebay {
namespace {

using Json = nlohmann::ordered_json;

// The second tells of limits in epochs that shaped a strided order: who does not know them would go
// on elsewhere.
constexpr int kFirstVersion = 1;
constexpr int kVersion = 2;
// Far above any real run, and low enough that positions computed from them cannot overflow.
constexpr std::uint64_t kMostIterations = std::uint64_t{1} << 40;
constexpr std::uint64_t kLargestBatch = std::uint64_t{1} << 32;
constexpr std::uint64_t kLargestWindow = std::uint64_t{1} << 40;
constexpr std::uint64_t kLastPosition = std::uint64_t{1} << 62;
// Each may cost a step a sample, until its last window is used up.
constexpr std::size_t kMostSegments = 4096;

[[noreturn]] void throw_out_of_range() {
  throw Error(ErrorKind::usage, "the saved state has numbers out of range",
              "give the text that Loader::state() returned");
}

Segment read_segment(const Json& json, std::uint64_t coalesce) {
  const auto ranks = json.at("ranks").get<std::uint64_t>();
  const auto batch = json.at("batch").get<std::uint64_t>();
  const auto iterations = json.at("iterations").get<std::uint64_t>();
  const auto epochs = json.value("epochs", std::uint64_t{0});
  const bool sound = ranks >= 1 && ranks <= batch && batch <= kLargestBatch &&
                     ranks <= std::numeric_limits<int>::max() &&
                     coalesce <= kLargestWindow / batch && iterations <= kMostIterations &&
                     iterations <= kLastPosition / batch;
  if (!sound) throw_out_of_range();
  return {
      .ranks = static_cast<int>(ranks), .batch = batch, .iterations = iterations, .epochs = epochs};
}

std::vector<Segment> read_segments(const Json& json, std::uint64_t coalesce) {
  if (json.size() > kMostSegments) {
    throw Error(ErrorKind::usage,
                fmt::format("the saved run has changed its ranks or batch {} times", json.size()),
                fmt::format("the limit is {}: start anew without the saved state", kMostSegments));
  }
  std::vector<Segment> segments;
  std::uint64_t positions = 0;
  for (const auto& one : json) {
    segments.push_back(read_segment(one, coalesce));
    positions += segments.back().iterations * segments.back().batch;
    if (positions > kLastPosition) throw_out_of_range();
  }
  return segments;
}

KnownStagger read_stagger(const Json& json) {
  const KnownStagger known{.at_once = json.at("at_once").get<int>(),
                           .roots = json.at("roots").get<int>()};
  if (known.at_once < 1 || known.at_once > known.roots) throw_out_of_range();
  return known;
}

/// Throws usage when the state is not of this version.
OrderName read_order(const Json& json) {
  const std::string order = json.at("order");
  const int version = json.at("version");
  const bool known = version >= kFirstVersion && version <= kVersion;
  if (const auto name = find_order(order); known && name) return *name;
  throw Error(ErrorKind::usage, "the saved state is of a kind that this version does not know",
              "resume with the version that wrote it");
}

/// The last segment of `options` is taken up where this run has the same batches up to its end.
void take_up_last(const RunState& state, LoaderOptions& options, int ranks) {
  const Segment last = options.done.back();
  if (last.ranks != ranks || last.batch != options.batch) return;
  const std::vector<Segment> before(options.done.begin(), options.done.end() - 1);
  const StridedOrder order(state.entries, ranks, options.batch, options.coalesce,
                           start_after(state.entries, options.coalesce, before),
                           {.epochs = options.epochs, .end = options.order_end()});
  const std::uint64_t shaped_by = order.ends_within(last.iterations) ? options.epochs : 0;
  if (last.epochs != shaped_by || last.iterations > order.iterations()) return;
  options.done.pop_back();
  options.first_iteration = last.iterations;
}

void resume_strided(const RunState& state, LoaderOptions& options, int ranks) {
  if (options.done.empty()) return;
  if (options.coalesce == 0) options.coalesce = state.coalesce;
  if (state.coalesce != options.coalesce) {
    throw Error(ErrorKind::usage,
                fmt::format("the run to resume coalesced {} iterations, this one {}",
                            state.coalesce, options.coalesce),
                fmt::format("give --coalesce {}", state.coalesce));
  }
  take_up_last(state, options, ranks);
}

}  // namespace

std::string write_state(const RunState& state) {
  Json segments = Json::array();
  int version = kFirstVersion;
  for (const Segment& segment : state.segments) {
    segments.push_back(
        {{"ranks", segment.ranks}, {"batch", segment.batch}, {"iterations", segment.iterations}});
    if (segment.epochs == 0) continue;
    segments.back()["epochs"] = segment.epochs;
    version = kVersion;
  }
  Json json{{"version", version},
            {"order", to_string(state.order)},
            {"fingerprint", state.fingerprint},
            {"entries", state.entries},
            {"epoch", state.epoch},
            {"segments", segments}};
  if (state.order == OrderName::strided) {
    json["coalesce"] = state.coalesce;
  } else {
    json["identity"] = state.identity;
    json["iterations"] = state.iterations;
  }
  if (state.stagger != KnownStagger()) {
    json["stagger"] = {{"at_once", state.stagger.at_once}, {"roots", state.stagger.roots}};
  }
  return json.dump();
}

RunState read_state(const std::string& text) {
  try {
    const auto json = Json::parse(text);
    RunState state{.order = read_order(json),
                   .fingerprint = json.at("fingerprint"),
                   .entries = json.at("entries").get<std::uint64_t>()};
    if (state.order == OrderName::strided) {
      state.coalesce = json.at("coalesce").get<std::uint64_t>();
      if (state.coalesce < 1 || state.coalesce > kLargestWindow) throw_out_of_range();
    } else {
      state.identity = json.at("identity");
      state.epoch = json.at("epoch").get<std::uint64_t>();
      state.iterations = json.at("iterations").get<std::uint64_t>();
      if (state.epoch > kMostIterations || state.iterations > kMostIterations) throw_out_of_range();
    }
    state.segments = read_segments(json.at("segments"), state.coalesce);
    if (json.contains("stagger")) state.stagger = read_stagger(json.at("stagger"));
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
  options.first_iteration = state.iterations;
  options.first_epoch = state.epoch;
  options.order_identity = state.identity;
  options.known_stagger = state.stagger;
  if (state.order != options.order) {
    throw Error(ErrorKind::usage,
                fmt::format("the run to resume had order {}, this one has {}",
                            to_string(state.order), to_string(options.order)),
                fmt::format("give --order {}", to_string(state.order)));
  }
  if (state.order != OrderName::strided) return options;
  require_fitting_shard(options, ranks);
  resume_strided(state, options, options.order_ranks(ranks));
  return options;
}

}  // namespace forebay
