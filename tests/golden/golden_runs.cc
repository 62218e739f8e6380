// golden_runs: delivers what each line of standard input asks for and prints what came.
//
//   line        DATASET <tab> RANKS <tab> BATCHES <tab> OPTIONS <tab> STATE
//   answer      a line a sample, by rank and delivery; then "state ...", then "end"
//
// Ranks are threads. BATCHES 0: to the end of the run. STATE: where to go on from; may be empty.
#include <fmt/format.h>
#include <xxhash.h>

#include <iostream>
#include <mutex>
#include <sstream>
#include <string>
#include <vector>

#include "forebay/error.hpp"
#include "forebay/loader.hpp"

namespace {

using namespace forebay;

struct GoldenRun {
  std::string dataset;
  int ranks = 1;
  std::uint64_t batches = 0;
  std::string options;
  std::string state;
};

GoldenRun parse(const std::string& line) {
  std::istringstream words(line);
  const auto word = [&words] {
    std::string text;
    std::getline(words, text, '\t');
    return text;
  };
  GoldenRun run{.dataset = word()};
  run.ranks = std::stoi(word());
  run.batches = std::stoull(word());
  run.options = word();
  run.state = word();
  return run;
}

std::string digest(std::span<const std::byte> bytes) {
  return fmt::format("{:016x}", XXH3_64bits(bytes.data(), bytes.size()));
}

std::string lines_of(const Loader& loader, const Batch& batch, bool decoded) {
  std::string lines;
  for (std::size_t i = 0; i < batch.samples().size(); ++i) {
    const Sample& sample = batch.samples()[i];
    lines +=
        fmt::format("{} {}.{} pass {}{} id {} global {} key {} value {} {}{}", batch.iteration(),
                    sample.epoch, sample.position, batch.pass().number,
                    batch.pass().ends ? " ends" : "", sample.id, sample.global, digest(sample.key),
                    sample.value.size(), digest(sample.value), sample.repeat ? " repeat" : "");
    for (std::size_t f = 0; decoded && f < loader.schema().fields.size(); ++f) {
      const std::uint64_t size = loader.schema().fields[f].bytes();
      lines += " " + digest(batch.field(f).subspan(i * size, size));
    }
    lines += '\n';
  }
  batch.check_unchanged();
  return lines;
}

/// What all ranks got, and rank 0's state.
std::string deliver(const GoldenRun& run) {
  LoaderOptions options = LoaderOptions::parse(run.options);
  if (!run.state.empty()) options = resume_options(run.state, options, run.ranks);
  std::vector<std::string> got(static_cast<std::size_t>(run.ranks));
  std::string state;
  run_ranks(run.ranks, 0, [&](const auto& comm) {
    Loader loader = Loader::open(comm, run.dataset, options);
    std::string& lines = got[static_cast<std::size_t>(comm->rank())];
    for (std::uint64_t n = 0; run.batches == 0 || n < run.batches; ++n) {
      const auto batch = loader.next();
      if (!batch) break;
      lines += lines_of(loader, *batch, options.decode);
    }
    lines += fmt::format("epochs done {}, schema {}\n", loader.epochs_done(),
                         options.decode ? to_string(loader.schema()) : "");
    comm->barrier();  // in_memory: who has what it wants still serves the others
    if (comm->rank() == 0) state = loader.state();
  });
  std::string all;
  for (std::size_t rank = 0; rank < got.size(); ++rank) {
    all += fmt::format("rank {}\n{}", rank, got[rank]);
  }
  return all + "state " + state + "\n";
}

}  // namespace

int main() {
  for (std::string line; std::getline(std::cin, line);) {
    try {
      std::cout << deliver(parse(line));
    } catch (const std::exception& error) {
      std::cout << "error " << error.what() << "\n";
    }
    std::cout << "end" << std::endl;
  }
}
