#include "cli/verify_samples.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <chrono>
#include <nlohmann/json.hpp>
#include <numeric>
#include <string>
#include <vector>

#include "format/sample_reader.hpp"
#include "program/output.hpp"

namespace forebay {
namespace {

using Json = nlohmann::ordered_json;

// Samples that are read together, and the gaps that are read with them.
constexpr std::uint64_t kStepBytes = std::uint64_t{64} << 20;
constexpr std::uint64_t kGapBytes = std::uint64_t{64} << 10;

struct Fault {
  std::uint64_t sample = 0;
  std::string text;
};

struct Outcome {
  std::uint64_t samples = 0;
  std::uint64_t fault_count = 0;
  std::vector<Fault> faults;  ///< the first ones
  std::uint64_t bytes_read = 0;
  DecodeCounters decoded;
  double seconds = 0;
};

Outcome check_all(const DataSet& data, Engine engine, std::uint64_t max_faults) {
  const auto start = std::chrono::steady_clock::now();
  SampleReader reader(data, {.engine = engine, .bulk = {}, .gap_bytes = kGapBytes});
  Outcome outcome{.samples = data.facts().entries};
  Progress progress("verifying", outcome.samples);
  const std::uint64_t step = std::max<std::uint64_t>(
      1, kStepBytes / std::max<std::uint64_t>(1, data.facts().sample_bytes));
  for (std::uint64_t first = 0; first < outcome.samples; first += step) {
    progress.update(first);
    find_faults(
        first, std::min(step, outcome.samples - first),
        [&reader](std::span<const std::uint64_t> ids) { reader.read(ids); },
        [&](std::uint64_t sample, const Error& error) {
          ++outcome.fault_count;
          if (outcome.faults.size() == max_faults) return;
          outcome.faults.push_back({sample, error.within({.sample = sample}).what()});
        });
  }
  data.check_unchanged();
  outcome.bytes_read = reader.counters().bytes;
  outcome.decoded = data.counters();
  outcome.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  return outcome;
}

/// What a sample is made of.
std::string shape_of(const DataSetFacts& facts) {
  if (!facts.schema.fields.empty()) return to_string(facts.schema);
  return facts.parts.empty() ? "any size" : fmt::format("{}", fmt::join(facts.parts, ", "));
}

Json to_json(const DataSet& data, const Outcome& outcome) {
  Json faults = Json::array();
  for (const Fault& fault : outcome.faults) {
    faults.push_back({{"sample", fault.sample}, {"text", fault.text}});
  }
  return {{"path", data.facts().path},
          {"sound", outcome.fault_count == 0},
          {"format", data.facts().format},
          {"samples", outcome.samples},
          {"schema", to_string(data.facts().schema)},
          {"bytes_read", outcome.bytes_read},
          {"chunks_decoded", outcome.decoded.chunks},
          {"bytes_decoded", outcome.decoded.bytes_decoded},
          {"fault_count", outcome.fault_count},
          {"faults", faults},
          {"seconds", outcome.seconds}};
}

void print_outcome(const DataSet& data, const Outcome& outcome) {
  for (const Fault& fault : outcome.faults) fmt::print("{}\n", fault.text);
  if (outcome.fault_count > outcome.faults.size()) {
    fmt::print("and {} more: see --max-faults\n",
               human_count(outcome.fault_count - outcome.faults.size()));
  }
  fmt::print("{}: {} samples of {} checked in {:.1f} s: {}\n", data.facts().path,
             human_count(outcome.samples), shape_of(data.facts()), outcome.seconds,
             outcome.fault_count == 0 ? "sound" : human_count(outcome.fault_count) + " damaged");
}

}  // namespace

void find_faults(std::uint64_t first, std::uint64_t count,
                 const std::function<void(std::span<const std::uint64_t>)>& read,
                 const std::function<void(std::uint64_t, const Error&)>& note) {
  std::vector<std::uint64_t> ids(count);
  std::iota(ids.begin(), ids.end(), first);
  try {
    return read(ids);
  } catch (const Error& error) {
    // That the files were changed says nothing of any sample.
    if (error.kind() != ErrorKind::corrupt && error.kind() != ErrorKind::io) throw;
    if (count == 1) return note(first, error);
  }
  find_faults(first, count / 2, read, note);
  find_faults(first + count / 2, count - count / 2, read, note);
}

void verify_samples(const DatasetOptions& dataset, std::uint64_t max_faults) {
  const auto data = open_sample_set(dataset, false);
  const Outcome outcome = check_all(*data, dataset.engine, max_faults);
  if (dataset.json) {
    print_json(to_json(*data, outcome));
  } else {
    print_outcome(*data, outcome);
  }
  if (outcome.fault_count == 0) return;
  flush_output();
  throw Error(ErrorKind::corrupt,
              fmt::format("{} of {} samples cannot be read", human_count(outcome.fault_count),
                          human_count(outcome.samples)),
              "restore the files from a copy, or leave these samples out (--order listed)",
              at_file(dataset.path));
}

}  // namespace forebay
