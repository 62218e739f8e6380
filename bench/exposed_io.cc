// How much reading a consumer notices that computes for some time with each batch.
//
//   forebay pack - DIRECTORY --from synthetic --preset cifar10-large --count SAMPLES
//   mpirun -n P exposed_io DIRECTORY compute=MICROSECONDS [OPTION=VALUE]...
//
// Drops the data set from the page cache, iterates one epoch (or `iterations`) with the loader's
// OPTIONs, sleeps for the given time with each batch in hand, and prints one JSON line with an
// object a rank. Computing is emulated by sleeping (paper 003, V), so that ranks may be more than
// cores.
#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "bench/cold_file.hpp"
#include "comm/values.hpp"
#include "core/clock.hpp"
#include "forebay/loader.hpp"
#include "forebay/mpi_session.hpp"
#include "forebay/trace.hpp"

namespace {

using Json = nlohmann::ordered_json;

// Of which single times are told: the first ones.
constexpr std::size_t kBatches = 512;
constexpr std::size_t kBuffers = 64;

struct Result {
  double elapsed = 0;  ///< of the epoch, from the first request for a batch
  double computed = 0;
  double read = 0;     ///< seek and read, of the reading thread
  double exposed = 0;  ///< I/O alone, the first buffer included
  double first = 0;    ///< of that, for the first batch
  double longest = 0;  ///< single call of next(), but for the first
  double decode = 0;
  double exposed_decode = 0;
  std::uint64_t batches = 0;
  std::uint64_t requested = 0;          ///< bytes
  std::array<float, kBatches> waits{};  ///< exposed I/O, by batch
  std::array<float, kBuffers> reads{};  ///< by buffer
};

/// How long the reading thread was at each buffer, as the timeline has it.
std::array<float, kBuffers> reads_of(const forebay::Trace& trace) {
  std::array<float, kBuffers> reads{};
  for (const auto& event : Json::parse("[" + trace.events() + "]")) {
    if (event.at("ph") != "X" || event.at("name") != "read") continue;
    const auto buffer = event.at("args").at("n").get<std::size_t>();
    if (buffer < kBuffers) reads[buffer] += event.at("dur").get<float>() * 1e-6F;
  }
  return reads;
}

/// The ones in front that are known.
template <std::size_t N>
Json known(const std::array<float, N>& seconds, std::uint64_t count) {
  return Json(
      std::vector<float>(seconds.begin(), seconds.begin() + std::min<std::size_t>(count, N)));
}

Json to_json(const Result& rank) {
  const auto buffers = std::ranges::count_if(rank.reads, [](float seconds) { return seconds > 0; });
  return {{"elapsed", rank.elapsed},
          {"computed", rank.computed},
          {"read", rank.read},
          {"exposed", rank.exposed},
          {"first", rank.first},
          {"longest", rank.longest},
          {"decode", rank.decode},
          {"exposed_decode", rank.exposed_decode},
          {"batches", rank.batches},
          {"requested", rank.requested},
          {"waits", known(rank.waits, rank.batches)},
          {"reads", known(rank.reads, static_cast<std::uint64_t>(buffers))}};
}

Result iterate(const std::shared_ptr<forebay::Communicator>& world, const std::string& directory,
               const forebay::LoaderOptions& options, std::chrono::microseconds compute) {
  if (world->rank() == 0) drop_from_cache(directory + "/data.mdb");
  world->barrier();
  forebay::Trace trace(world->rank());
  auto loader = forebay::Loader::open(world, directory, options, &trace);
  Result result;
  const double begin = forebay::now_seconds();
  double asked = begin;
  while (const auto batch = loader.next()) {
    const double started = forebay::now_seconds();
    const double exposed = loader.statistics().exposed_seconds;
    if (result.batches < kBatches) {
      result.waits[result.batches] = static_cast<float>(exposed - result.exposed);
    }
    result.exposed = exposed;
    if (result.batches++ == 0) {
      result.first = exposed;
    } else {
      result.longest = std::max(result.longest, started - asked);
    }
    if (compute.count() > 0) std::this_thread::sleep_for(compute);
    asked = forebay::now_seconds();
    result.computed += asked - started;
  }
  result.elapsed = forebay::now_seconds() - begin;
  const auto figures = loader.statistics();
  result.read = figures.seek_seconds + figures.read_seconds;
  result.exposed = figures.exposed_seconds;
  result.decode = figures.decode_seconds;
  result.exposed_decode = figures.exposed_decode_seconds;
  result.requested = figures.bytes_requested;
  result.reads = reads_of(trace);
  return result;
}

void run(const std::vector<std::string>& words) {
  const forebay::MpiSession session;
  forebay::LoaderOptions options;
  std::chrono::microseconds compute{0};
  for (std::size_t i = 1; i < words.size(); ++i) {
    const auto equals = words[i].find('=');
    if (equals == std::string::npos) throw std::invalid_argument(words[i] + " has no value");
    const std::string name = words[i].substr(0, equals), value = words[i].substr(equals + 1);
    if (name == "compute") {
      compute = std::chrono::microseconds(std::stoll(value));
    } else {
      options.set(name, value);
    }
  }
  if (options.iterations == 0) options.epochs = 1;
  const auto world = session.world();
  const Result mine = iterate(world, words[0], options, compute);
  Json ranks = Json::array();
  for (const Result& rank : forebay::gather_all(*world, mine)) ranks.push_back(to_json(rank));
  if (world->rank() == 0) fmt::print("{}\n", Json{{"ranks", ranks}}.dump());
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2) {
    fmt::print(stderr, "usage: exposed_io DIRECTORY [NAME=VALUE]...\n");
    return 2;
  }
  try {
    run({argv + 1, argv + argc});
  } catch (const std::exception& error) {
    fmt::print(stderr, "exposed_io: {}\n", error.what());
    return 1;
  }
}
