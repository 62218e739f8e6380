// forebay-bench generate: HDF5 files laid out as those of the applications of paper 003, of any
// size, with something to learn in them.
#include <fmt/format.h>

#include <chrono>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>

#include "bench/command/commands.hpp"
#include "bench/command/generate/maker.hpp"
#include "forebay/error.hpp"
#include "program/output.hpp"

namespace forebay::bench {
namespace {

namespace fs = std::filesystem;
using generate::Maker;
using generate::Options;

constexpr std::uint64_t kMostFiles = 100'000;
constexpr std::uint64_t kMostSampleBytes = std::uint64_t{1} << 32;  // what a chunk of HDF5 may have

constexpr const char* kFooter = R"(
Applications:
  cosmoflow  3Dmap   u16 side x side x side x channels: cubes of matter
             unitPar f32 4: slope, stretching, skewness and strength of its structure
  neuron     x       f32 length x 3: what three electrodes measure
             y       f32 19: properties of the cell

Targets are uniform in (-1, 1): who always says 0 has a mean squared error of 1/3. A sample depends
on the seed and its number alone, however many files there are. Each file is written as NAME.partial
and gets its name when it is complete. Train with `forebay train --net cosmoflow` or `neuron`.)";

std::unique_ptr<Maker> make(const Options& options) {
  return options.application == "cosmoflow" ? generate::make_cosmoflow(options)
                                            : generate::make_neuron(options);
}

/// DEST, or DEST with a number before its ending.
std::string name_of(const Options& options, std::uint64_t file) {
  if (options.files == 1) return options.destination;
  const fs::path path(options.destination);
  const std::size_t digits = std::to_string(options.files - 1).size();
  const std::string name =
      fmt::format("{}-{:0{}}{}", path.stem().string(), file, digits, path.extension().string());
  return (path.parent_path() / name).string();
}

void check(const Options& options, const Maker& maker) {
  if (options.files > std::min(options.samples, kMostFiles)) {
    throw Error(ErrorKind::usage,
                fmt::format("{} samples in {} files", options.samples, options.files),
                fmt::format("give at most {} files, each with a sample", kMostFiles));
  }
  const std::uint64_t rows = std::max<std::uint64_t>(1, options.chunk_rows);
  if (maker.input().bytes() >= kMostSampleBytes / rows) {
    throw Error(
        ErrorKind::usage,
        fmt::format("{} samples of {} in a chunk", rows, human_bytes(maker.input().bytes())),
        "HDF5's limit is 4 GiB: give smaller samples, or fewer --chunk-rows");
  }
  for (std::uint64_t file = 0; file < options.files && !options.force; ++file) {
    if (!fs::exists(fs::symlink_status(name_of(options, file)))) continue;
    throw Error(ErrorKind::usage, "the destination exists",
                "name another one, or replace it with --force", at_file(name_of(options, file)));
  }
}

struct Summary {
  std::uint64_t samples = 0;
  std::uint64_t file_bytes = 0;
  double seconds = 0;
};

Summary write(const Options& options, Maker& maker) {
  const auto start = std::chrono::steady_clock::now();
  const Schema schema{{maker.input(), maker.target()}};
  std::vector<std::byte> input(maker.input().bytes());
  std::vector<float> target(maker.target().elements());
  Progress progress("generating", options.samples);
  Summary summary;
  for (std::uint64_t file = 0; file < options.files; ++file) {
    const std::uint64_t end = options.samples * (file + 1) / options.files;
    const std::uint64_t first = summary.samples;
    const std::string name = name_of(options, file);
    const auto out = generate::create_hdf5(
        name, schema,
        {.rows = end - first, .chunk_rows = options.chunk_rows, .gzip = options.gzip});
    for (std::uint64_t sample = first; sample < end; ++sample) {
      maker.make(sample, input, target);
      out->write(sample - first, 0, input);
      out->write(sample - first, 1, std::as_bytes(std::span(target)));
      progress.update(++summary.samples);
    }
    out->complete();
    summary.file_bytes += fs::file_size(name);
  }
  summary.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  return summary;
}

void print_summary(const Options& options, const Maker& maker, const Summary& summary) {
  if (options.json) {
    print_json({{"destination", options.destination},
                {"application", options.application},
                {"schema", to_string(Schema{{maker.input(), maker.target()}})},
                {"samples", summary.samples},
                {"files", options.files},
                {"file_bytes", summary.file_bytes},
                {"seconds", summary.seconds}});
    return;
  }
  fmt::print("generated {} samples of {} in {:.1f} s\n", human_count(summary.samples),
             to_string(Schema{{maker.input(), maker.target()}}), summary.seconds);
  fmt::print("{}: {} in {} file{}\n", options.destination, human_bytes(summary.file_bytes),
             human_count(options.files), options.files == 1 ? "" : "s");
}

void run(Options options) {
  if (options.gzip > 0 && options.chunk_rows == 0) options.chunk_rows = 1;
  const auto maker = make(options);
  check(options, *maker);
  print_summary(options, *maker, write(options, *maker));
}

void add_options(CLI::App& app, Options& options) {
  app.add_option("APPLICATION", options.application, "cosmoflow or neuron")
      ->required()
      ->check(CLI::IsMember({"cosmoflow", "neuron"}));
  app.add_option("DEST", options.destination, "File to make; with --files, NAME-0.h5, NAME-1.h5...")
      ->required();
  app.add_option("--samples", options.samples, "How many")
      ->check(CLI::Range(1, 1'000'000'000))
      ->capture_default_str();
  app.add_option("--side", options.side, "Of cosmoflow's cubes; the paper has 128")
      ->check(CLI::Range(2, 512))
      ->capture_default_str();
  app.add_option("--channels", options.channels, "Of cosmoflow's cubes")
      ->check(CLI::Range(1, 64))
      ->capture_default_str();
  app.add_option("--length", options.length, "Of neuron's series")
      ->check(CLI::Range(4, 1'000'000))
      ->capture_default_str();
  app.add_option("--files", options.files, "Spread the samples over this many files")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  app.add_option("--chunk-rows", options.chunk_rows,
                 "Samples in a chunk; 0: contiguous, or 1 with --gzip")
      ->capture_default_str();
  app.add_option("--gzip", options.gzip, "Compress the chunks, level 1 to 9; 0: do not")
      ->check(CLI::Range(0, 9))
      ->capture_default_str();
  app.add_option("--seed", options.seed, "What to draw from")->capture_default_str();
  app.add_flag("--force", options.force, "Replace files that exist");
  app.add_flag("--json", options.json, "Print the summary as JSON");
}

}  // namespace

void add_generate_command(CLI::App& app) {
  CLI::App* sub = app.add_subcommand("generate", "Make HDF5 files to learn from");
  auto options = std::make_shared<Options>();
  add_options(*sub, *options);
  sub->footer(kFooter);
  sub->callback([options] { run(*options); });
}

}  // namespace forebay::bench
