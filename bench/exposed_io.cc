// How much reading a consumer notices that computes for some time with each batch.
//
//   exposed_io make DIRECTORY SAMPLES
//   mpirun -n P exposed_io run DIRECTORY compute=MICROSECONDS [OPTION=VALUE]...
//
// `make` writes a data set of 3,072-byte tensors. `run` drops it from the page cache, iterates one
// epoch (or `iterations`) with the loader's OPTIONs, sleeps for the given time with each batch in
// hand, and prints one JSON line with an object a rank. Computing is emulated by sleeping (paper
// 003, V), so that ranks may be more than cores.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <nlohmann/json.hpp>
#include <random>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "bench/cold_file.hpp"
#include "core/clock.hpp"
#include "forebay/loader.hpp"
#include "forebay/mpi.hpp"
#include "forebay/trace.hpp"
#include "format/lmdb/writer.hpp"

namespace {

constexpr std::size_t kSampleBytes = 3072;
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
  for (const auto& event : nlohmann::json::parse("[" + trace.events() + "]")) {
    if (event.at("ph") != "X" || event.at("name") != "read") continue;
    const auto buffer = event.at("args").at("n").get<std::size_t>();
    if (buffer < kBuffers) reads[buffer] += event.at("dur").get<float>() * 1e-6F;
  }
  return reads;
}

std::uint64_t buffers_of(const Result& result) {
  return static_cast<std::uint64_t>(
      std::ranges::count_if(result.reads, [](float seconds) { return seconds > 0; }));
}

/// The ones in front that are known.
template <std::size_t N>
std::string list(const std::array<float, N>& seconds, std::uint64_t known) {
  const std::span all(seconds);
  return fmt::format("{:.5f}", fmt::join(all.first(std::min<std::size_t>(known, N)), ","));
}

void make(const std::string& directory, std::uint64_t samples) {
  forebay::lmdb::Writer writer(directory, {});
  std::mt19937_64 random(1);
  std::vector<std::byte> value(kSampleBytes);
  for (std::uint64_t i = 0; i < samples; ++i) {
    for (std::size_t at = 0; at < value.size(); at += 8) {
      const std::uint64_t word = random();
      std::memcpy(value.data() + at, &word, sizeof word);
    }
    const std::string key = fmt::format("{:08}", i);
    writer.put(std::as_bytes(std::span(key)), value);
  }
  writer.commit();
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
  options.codec = "raw";
  options.schema = fmt::format("image:u8[{}]", kSampleBytes);
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
  std::vector<Result> all(static_cast<std::size_t>(world->size()));
  world->all_gather(std::as_bytes(std::span(&mine, 1)), std::as_writable_bytes(std::span(all)));
  if (world->rank() != 0) return;
  std::string text;
  for (const Result& rank : all) {
    text += fmt::format(
        R"({}{{"elapsed":{:.5f},"computed":{:.5f},"read":{:.5f},"exposed":{:.6f},"first":{:.6f},)"
        R"("longest":{:.6f},"decode":{:.5f},"exposed_decode":{:.6f},"batches":{},"requested":{},)"
        R"("waits":[{}],"reads":[{}]}})",
        text.empty() ? "" : ",", rank.elapsed, rank.computed, rank.read, rank.exposed, rank.first,
        rank.longest, rank.decode, rank.exposed_decode, rank.batches, rank.requested,
        list(rank.waits, rank.batches), list(rank.reads, buffers_of(rank)));
  }
  fmt::print("{{\"ranks\":[{}]}}\n", text);
}

}  // namespace

int main(int argc, char** argv) {
  const std::vector<std::string> words(argv + 1, argv + argc);
  try {
    if (words.size() == 3 && words[0] == "make") {
      make(words[1], std::stoull(words[2]));
    } else if (words.size() >= 2 && words[0] == "run") {
      run({words.begin() + 1, words.end()});
    } else {
      std::fputs("usage: exposed_io make DIRECTORY SAMPLES | run DIRECTORY [NAME=VALUE]...\n",
                 stderr);
      return 2;
    }
  } catch (const std::exception& error) {
    fmt::print(stderr, "exposed_io: {}\n", error.what());
    return 1;
  }
}
