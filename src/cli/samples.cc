#include <fmt/format.h>
#include <xxhash.h>

#include <chrono>
#include <exception>
#include <filesystem>
#include <iterator>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "cli/commands.hpp"
#include "comm/values.hpp"
#include "forebay/error.hpp"
#include "forebay/loader.hpp"
#include "forebay/packed_parts.hpp"
#include "forebay/trace.hpp"
#include "format/convention/database_list.hpp"
#include "format/dataset_files.hpp"
#include "program/flags.hpp"
#include "program/output.hpp"
#include "program/run.hpp"
#include "storage/url.hpp"

namespace forebay {
namespace {

std::uint64_t digest(std::span<const std::byte> bytes) {
  return XXH3_64bits(bytes.data(), bytes.size());
}

/// One sample as a line of JSON:
/// {"epoch":0,"iteration":0,"rank":0,"position":0,"global":0,"sample":0,
/// "key":"<hex>","bytes":3100,"xxh3":"<16 hex>","repeat":false}. With `decoded`, the XXH3-64 of the
/// sample's fields, one after the other, is added under that name. Of a sample of several `parts`:
/// "parts":{"image":{"bytes":3000,"xxh3":"<16 hex>"},...} as well.
std::string sample_line(const Sample& sample, std::uint64_t iteration, int rank,
                        const std::uint64_t* decoded, std::span<const std::string> parts) {
  std::string line = fmt::format(
      R"({{"epoch":{},"iteration":{},"rank":{},"position":{},"global":{},"sample":{},"key":")",
      sample.epoch, iteration, rank, sample.position, sample.global, sample.id);
  auto out = std::back_inserter(line);
  for (const std::byte byte : sample.key) fmt::format_to(out, "{:02x}", std::to_integer<int>(byte));
  std::vector<std::byte> value(packed_size(sample.value));
  copy_packed(sample.value, value);
  fmt::format_to(out, R"(","bytes":{},"xxh3":"{:016x}","repeat":{})", value.size(), digest(value),
                 sample.repeat);
  if (decoded != nullptr) fmt::format_to(out, R"(,"decoded":"{:016x}")", *decoded);
  if (!parts.empty()) {
    const auto values = split_parts(value, parts.size());
    for (std::size_t p = 0; p < parts.size(); ++p) {
      fmt::format_to(out, R"({}"{}":{{"bytes":{},"xxh3":"{:016x}"}})",
                     p == 0 ? R"(,"parts":{)" : ",", parts[p], values[p].size(), digest(values[p]));
    }
    line += "}";
  }
  line += "}\n";
  return line;
}

struct SamplesFlags {
  std::string dataset;
  std::string output;
  std::string trace;
  bool statistics = false;
  bool explain = false;
  bool json = false;  ///< of --explain; the samples are JSON lines in any case
  LoaderOptions loader;
};

/// Those that exist under the name of a data set, of any format.
std::vector<std::string> files_named_by(const std::string& dataset) {
  std::vector<std::string> files;
  const auto add = [&files](const std::vector<std::string>& more) {
    files.insert(files.end(), more.begin(), more.end());
  };
  // Where one of them fails, opening the data set says better what is wrong.
  try {
    for (const std::string& database : convention::all_databases(dataset)) {
      const std::string path = without_file_scheme(database);
      add({path, path + "/data.mdb"});
    }
    add(find_dataset_files(dataset).files);
  } catch (const Error&) {
  }
  return files;
}

/// Opening the output for writing would empty the data that are being read.
void refuse_to_overwrite(const std::string& dataset, const std::string& output) {
  namespace fs = std::filesystem;
  std::error_code ignored;
  if (output.empty() || !fs::exists(output, ignored)) return;
  for (const std::string& data : files_named_by(dataset)) {
    if (!fs::equivalent(data, output, ignored)) continue;
    throw Error(ErrorKind::usage, "the output would overwrite the data set", "name another file",
                {.file = output});
  }
}

/// Of all fields of sample number `index` of a decoded batch.
std::uint64_t digest_of_fields(const Schema& schema, const Batch& batch, std::size_t index) {
  std::vector<std::byte> fields;
  for (std::size_t f = 0; f < schema.fields.size(); ++f) {
    const std::uint64_t size = schema.fields[f].bytes();
    const auto field = batch.field(f).subspan(index * size, size);
    fields.insert(fields.end(), field.begin(), field.end());
  }
  return digest(fields);
}

std::string lines_of(const Loader& loader, const Batch& batch, int rank, bool decoded) {
  std::string lines;
  for (std::size_t i = 0; i < batch.samples().size(); ++i) {
    const Sample& sample = batch.samples()[i];
    const std::uint64_t fields = decoded ? digest_of_fields(loader.schema(), batch, i) : 0;
    lines +=
        sample_line(sample, batch.iteration(), rank, decoded ? &fields : nullptr, loader.parts());
  }
  batch.check_unchanged();
  return lines;
}

void print_statistics(Communicator& comm, const Loader& loader) {
  const LoaderStatistics mine = loader.statistics();
  std::vector<LoaderStatistics> all(static_cast<std::size_t>(comm.size()));
  comm.all_gather(std::as_bytes(std::span(&mine, 1)), std::as_writable_bytes(std::span(all)));
  if (comm.rank() != 0) return;
  std::string ranks;
  for (const auto& rank : all) ranks += (ranks.empty() ? "" : ",") + to_json(rank);
  fmt::print(stderr, "{{\"all\":{},\"ranks\":[{}]}}\n", to_json(combine(all)), ranks);
}

/// Whoever reads from a pipe takes their time, as a person who turns pages does. The other ranks
/// would give up rank 0, which writes, did they not hear from it. Returns what failed.
std::exception_ptr write_in_peace(Communicator& comm, LineFile* file) {
  constexpr std::chrono::seconds kBetweenWords{1};
  std::exception_ptr failure;
  const auto is_written = [&] {
    try {
      return file == nullptr || file->write(kBetweenWords);
    } catch (const Error&) {
      failure = std::current_exception();
      return true;
    }
  };
  while (!everywhere(comm, is_written())) {
  }
  return failure;
}

void print_batches(Communicator& comm, Loader& loader, const SamplesFlags& flags) {
  std::unique_ptr<LineFile> file;  // only rank 0 writes
  bool to_pipe = false;
  collectively(comm, [&] {
    if (comm.rank() != 0) return;
    file = std::make_unique<LineFile>(flags.output, flags.loader.timeout);
    to_pipe = file->is_pipe();
  });
  share_value(comm, to_pipe);
  const int rank = flags.loader.order_rank(comm.rank(), comm.size());
  std::vector<std::vector<std::byte>> gathered;
  // All ranks learn of a failure at the same point, so none is left behind in the middle of gather.
  for (;;) {
    std::optional<Batch> batch;
    std::string lines;
    for (const auto& of_rank : gathered) file->add(of_rank);
    const auto failure = to_pipe ? write_in_peace(comm, file.get()) : nullptr;
    collectively(comm, [&] {
      if (failure) std::rethrow_exception(failure);
      if (file && !to_pipe) file->write_full_buffers();
      batch = loader.next();
      if (batch) lines = lines_of(loader, *batch, rank, flags.loader.decode);
    });
    if (!batch) break;
    gathered = comm.gather(std::as_bytes(std::span(lines)), 0);
  }
  collectively(comm, [&] {
    if (file) file->write(std::chrono::milliseconds(0));
  });
}

void print_plan(const Loader& loader, bool json) {
  if (!json) {
    fmt::print("{}\n{}", loader.explain(), loader.plan());
    return;
  }
  nlohmann::ordered_json object{{"explain", loader.explain()}, {"plan", nullptr}};
  const std::string plan = loader.plan(true);
  if (!plan.empty()) object["plan"] = nlohmann::ordered_json::parse(plan);
  print_json(object);
}

void run_samples(const std::shared_ptr<Communicator>& comm, const SamplesFlags& flags) {
  // What each of these adds is collective, or a part of every line.
  require_agreement(*comm,
                    fmt::format("decode={},stats={},trace={},explain={}", flags.loader.decode,
                                flags.statistics, !flags.trace.empty(), flags.explain),
                    "the options of the output");
  collectively(*comm, [&] {
    refuse_to_overwrite(flags.dataset, flags.output);
    refuse_to_overwrite(flags.dataset, flags.trace);
  });
  std::unique_ptr<Trace> trace;
  if (!flags.trace.empty()) trace = std::make_unique<Trace>(comm->rank());
  LoaderOptions options = flags.loader;
  options.one_at_a_time = true;
  Loader loader = Loader::open(comm, flags.dataset, options, trace.get());
  if (flags.explain) {
    if (comm->rank() == 0) print_plan(loader, flags.json);
    return;
  }
  comm->set_timeout(flags.loader.patience_with_ranks());
  print_batches(*comm, loader, flags);
  if (flags.statistics) print_statistics(*comm, loader);
  if (trace) write_trace_of_ranks(*comm, *trace, flags.trace);
}

void check_flags(const SamplesFlags& flags) {
  if (flags.loader.batch == 0) {
    throw Error(ErrorKind::usage, "--batch is missing", "give the samples of a global batch");
  }
}

}  // namespace

void add_samples_command(CLI::App& app) {
  auto flags = std::make_shared<SamplesFlags>();
  CLI::App* command = app.add_subcommand(
      "samples", "Print what each rank gets, one JSON line a sample; run it under mpirun");
  command
      ->add_option("dataset", flags->dataset,
                   "LMDB: DIR, FILE, either with #NAME, A,B or 'PATTERN*' for several, x=A&y=B "
                   "beside each other; or what --format lists: PATH, 'PATTERN*' or PATH,PATH, each "
                   "with #x=NAME,y=NAME for fields or parts")
      ->required();
  command->add_flag("--decode", flags->loader.decode,
                    "Decode each sample and add a digest of its fields; those that are skipped "
                    "(--undecodable) have no line but a warning");
  command->add_option("--output", flags->output, "File for the lines (default: standard output)");
  command->add_flag("--stats", flags->statistics, "Print the loader's figures as JSON on stderr");
  command->add_option("--trace", flags->trace, "Write a timeline for Perfetto to this file");
  command->add_flag("--explain", flags->explain,
                    "Print what would be read and how, and read nothing");
  command->add_flag("--json", flags->json,
                    "With --explain: as JSON. Samples are JSON lines in any case");
  add_order_flags(*command, flags->loader);
  add_loader_flags(*command, flags->loader, {"decode"});
  command->callback([flags] {
    check_flags(*flags);
    if (flags->loader.iterations == 0 && flags->loader.epochs == 0) flags->loader.epochs = 1;
    flags->loader.explain = flags->explain;
    // Values that nobody decodes may be anything, also where the codec is looked up: in the first.
    const bool any_value = !flags->loader.decode && flags->loader.schema.empty();
    if (any_value && flags->loader.codec == "auto") flags->loader.codec = "bytes";
    run_on_ranks([&](const auto& comm) { run_samples(comm, *flags); });
  });
}

}  // namespace forebay
