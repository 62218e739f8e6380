#include "read/data_set_access.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "core/log.hpp"
#include "core/worker_pool.hpp"
#include "format/codec/parts_codec.hpp"
#include "format/sample_reader.hpp"
#include "read/data_set_reader.hpp"
#include "storage/joined_file.hpp"

namespace forebay {
namespace {

// More threads than that wait for each other's memory, not for work.
constexpr unsigned kMostDecodeThreads = 8;
// Between samples of different sizes, in the stage.
constexpr std::uint64_t kApartBytes = 64;

}  // namespace

FormatOptions format_options(const DataOptions& options, ReadEngine engine) {
  return {.engine = engine == ReadEngine::mmap ? Engine::mmap : Engine::pread,
          .format = options.format,
          .schema = options.schema,
          .header_bytes = options.header_bytes,
          .record_bytes = options.record_bytes,
          .big_endian = options.big_endian,
          .window_length = options.length,
          .window_step = options.step};
}

void tell_notes(const DataSetFacts& facts) {
  for (const std::string& note : facts.notes) log(LogLevel::warning, "{}: {}", facts.path, note);
}

CodecOptions codec_of(const DataSetFacts& facts, const CodecOptions& wanted) {
  if (facts.schema.fields.empty()) {
    if (!facts.parts.empty()) {
      return {.codec = parts_codec_text(facts.parts, wanted.codec, facts.codecs),
              .schema = wanted.schema};
    }
    const bool known = wanted.codec == "auto" && wanted.schema.empty() && !facts.codecs.empty();
    return {.codec = known ? facts.codecs[0] : wanted.codec, .schema = wanted.schema};
  }
  if (wanted.codec == "bytes") return {.codec = "bytes", .schema = {}};
  if (wanted.codec == "auto" || wanted.codec == "raw") {
    return {.codec = "raw", .schema = to_string(facts.schema)};
  }
  throw Error(ErrorKind::usage,
              fmt::format("the samples of {} files are fields already, not values for codec {}",
                          facts.format, wanted.codec),
              "leave --codec out", {.file = facts.path});
}

void DataSetAccess::open(ReadSetup& setup, std::stop_token stop, Peers& peers) {
  FormatOptions how = format_options(options_, options_.engine);
  how.keeps = options_.strategy == Strategy::automatic;
  how.format = format_;
  data_ = open_data_set(path_, how, peers);
  const DataSetFacts& facts = data_->facts();
  if (facts.value_bytes == 0 && facts.entries > 0) {
    throw Error(ErrorKind::unsupported, "its samples have no bytes", "name fields that have some",
                {.file = path_});
  }
  consider_sizes(setup, 1, facts.together * facts.sample_bytes);
  // Each request in flight would keep a file of its own open.
  setup.scattered = setup.scattered && only_file() != nullptr;
  const Engine engine = storage_engine(setup, *resolve(data_->whole(), 0).file);
  bulk_ = make_bulk_reader(data_->whole(), engine, bulk_options(options_, setup, std::move(stop)));
  if (options_.order == OrderName::grouped && options_.group % facts.together != 0) {
    log(LogLevel::info,
        "{}: chunks hold {} samples each, and groups of {} cut them: some are decoded more than "
        "once in an epoch; give --group a multiple",
        path_, facts.together, options_.group);
  }
}

DataFacts DataSetAccess::facts() const {
  const DataSetFacts& known = data_->facts();
  const bool in_file = known.values == DataSetFacts::Values::in_file;
  DataFacts facts{.entries = known.entries,
                  .stored_bytes = std::max(known.value_bytes, in_file ? data_->stored_bytes() : 0),
                  .local = resolve(data_->whole(), 0).file->is_local(),
                  .assembled = !in_file,
                  .files = {},
                  .parts = known.parts,
                  .fingerprint = known.fingerprint};
  // Samples of any size lie apart in the stage, with their names.
  if (known.schema.fields.empty()) facts.stored_bytes += known.key_bytes + known.entries * kApartBytes;
  if (known.of_files.size() < 2) return facts;
  std::uint64_t first = 0;
  for (const std::uint64_t samples : known.of_files) {
    if (samples > 0) facts.files.push_back(first);
    first += samples;
  }
  facts.files.push_back(first);
  return facts;
}

std::shared_ptr<const File> DataSetAccess::only_file() const {
  const auto files = data_->files();
  return files.size() == 1 ? files[0] : nullptr;
}

CodecOptions DataSetAccess::codec(const CodecOptions& wanted) const {
  return codec_of(data_->facts(), wanted);
}

void DataSetAccess::read_sample(std::uint64_t sample, const RecordSink& sink) {
  const auto plan = data_->plan({&sample, 1});
  const auto reads = place_extents(plan->extents(), 0);
  std::vector<std::byte> memory(bytes_of(reads));
  std::vector<std::byte> scratch(plan->scratch_bytes());
  bulk_->read(requests_of(*data_, reads, memory), [](std::size_t) {});
  const PlacedBytes bytes(reads, memory);
  plan->decode_all(bytes, scratch);
  data_->check_unchanged();
  PlanValues values(*data_, *plan, bytes, scratch);
  std::vector<std::byte> value(values.bytes(0));
  values.write(0, value);
  sink({.sample = sample, .key = plan->key(0, bytes), .value = value});
}

std::optional<ReadOutline> DataSetAccess::outline(std::span<const SampleRun> runs,
                                                  std::uint64_t gap_bytes) {
  std::vector<std::uint64_t> ids;
  for (const SampleRun& run : runs) {
    for (std::uint64_t i = 0; i < run.count; ++i) ids.push_back(run.sample + i);
  }
  const auto plan = data_->plan(ids);
  ReadOutline outline{.window_samples = ids.size(), .extents = plan->extents().size()};
  std::uint64_t needed = 0;
  for (const FileExtent& extent : plan->extents()) needed += extent.length;
  const auto reads = place_extents(plan->extents(), gap_bytes);
  outline.reads = reads.size();
  outline.bytes = bytes_of(reads);
  outline.gap_bytes = outline.bytes - needed;
  for (const PlacedExtent& read : reads) {
    outline.largest_read = std::max(outline.largest_read, read.extent.length);
  }
  return outline;
}

void DataSetAccess::locate(const ReadSetup&, const LocatingRanks& ranks) {
  if (ranks.world.rank() == 0) tell_notes(data_->facts());
}

std::string DataSetAccess::describe() const {
  const DataSetFacts& facts = data_->facts();
  std::string text = facts.format;
  if (const std::size_t files = data_->files().size(); files > 1) {
    text += fmt::format(", {} files", files);
  }
  if (facts.together > 1) text += fmt::format(", decoded {} samples at a time", facts.together);
  return fmt::format("{}, {}", text, bulk_->describe());
}

std::unique_ptr<PieceReader> DataSetAccess::make_reader(const ReaderSite& site) {
  const Placement placement = Placement::of(site.cores, Component::decode);
  const unsigned threads =
      choose_workers(options_.decode_threads, placement, site.node_ranks, kMostDecodeThreads);
  return std::make_unique<DataSetReader>(DataSetParts{.data = data_.get(),
                                                      .bulk = std::move(bulk_),
                                                      .gap_bytes = site.gap_bytes,
                                                      .private_bytes = site.private_bytes,
                                                      .threads = threads,
                                                      .placement = placement},
                                         site.list, site.stage, site.root, site.turns);
}

}  // namespace forebay
