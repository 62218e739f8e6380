#include "read/sample_set_access.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "core/log.hpp"
#include "core/worker_pool.hpp"
#include "format/sample_reader.hpp"
#include "read/sample_set_reader.hpp"
#include "storage/joined_file.hpp"

namespace forebay {
namespace {

// More threads than that wait for each other's memory, not for work.
constexpr unsigned kMostDecodeThreads = 8;

/// The most rows of any field that are decoded together.
std::uint64_t rows_together(const SampleSource& source) {
  std::uint64_t rows = 1;
  for (const SamplePart& part : source.parts()) {
    for (const PartField& field : part.fields) {
      rows = std::max(rows, field.storage->rows_together());
    }
  }
  return rows;
}

}  // namespace

SampleOptions sample_options(const LoaderOptions& options) {
  return {.engine = options.engine == ReadEngine::mmap ? Engine::mmap : Engine::pread,
          .format = options.format,
          .schema = options.schema,
          .header_bytes = options.header_bytes,
          .record_bytes = options.record_bytes,
          .big_endian = options.big_endian};
}

void SampleSetAccess::open(ReadSetup& setup, std::stop_token stop) {
  SampleOptions how = sample_options(options_);
  how.format = format_;
  source_ = open_samples(path_, how);
  if (source_->sample_bytes() == 0 && source_->entries() > 0) {
    throw Error(ErrorKind::unsupported, "its samples have no bytes", "name fields that have some",
                {.file = path_});
  }
  const std::uint64_t rows = rows_together(*source_);
  consider_sizes(setup, 1, rows * source_->sample_bytes());
  // Each request in flight would keep a file of its own open.
  setup.scattered = setup.scattered && only_file() != nullptr;
  const Engine engine = storage_engine(setup, *resolve(source_->whole(), 0).file);
  bulk_ =
      make_bulk_reader(source_->whole(), engine, bulk_options(options_, setup, std::move(stop)));
  if (options_.order == OrderName::grouped && options_.group % rows != 0) {
    log(LogLevel::info,
        "{}: chunks hold {} samples each, and groups of {} cut them: some are decoded more than "
        "once in an epoch; give --group a multiple",
        path_, rows, options_.group);
  }
}

DataFacts SampleSetAccess::facts() const {
  DataFacts facts{.entries = source_->entries(),
                  .stored_bytes = 0,
                  .local = on_local_device(*resolve(source_->whole(), 0).file),
                  .assembled = !source_->packed(),
                  .files = {},
                  .parts = {},
                  .fingerprint = source_->fingerprint().text};
  // Files whose rows were never written may promise more than numbers can tell.
  const std::uint64_t sample = source_->sample_bytes();
  const bool absurd = sample > 0 && source_->entries() > UINT64_MAX / sample;
  facts.stored_bytes = std::max(absurd ? UINT64_MAX : source_->entries() * sample,
                                source_->packed() ? source_->stored_bytes() : 0);
  if (source_->parts().size() < 2) return facts;
  std::uint64_t first = 0;
  for (const SamplePart& part : source_->parts()) {
    if (part.rows > 0) facts.files.push_back(first);
    first += part.rows;
  }
  facts.files.push_back(first);
  return facts;
}

std::shared_ptr<const File> SampleSetAccess::only_file() const {
  const auto files = source_->files();
  return files.size() == 1 ? files[0] : nullptr;
}

CodecOptions SampleSetAccess::codec(const CodecOptions& wanted) const {
  if (wanted.codec == "bytes") return {.codec = "bytes", .schema = {}};
  if (wanted.codec == "auto" || wanted.codec == "raw") {
    return {.codec = "raw", .schema = to_string(source_->schema())};
  }
  throw Error(ErrorKind::usage,
              fmt::format("the samples of {} files are fields already, not values for codec {}",
                          source_->format(), wanted.codec),
              "leave --codec out", {.file = path_});
}

void SampleSetAccess::read_sample(std::uint64_t sample, const RecordSink& sink) {
  const SamplePlan plan = source_->plan({&sample, 1});
  const auto reads = place_extents(plan.extents(), 0);
  std::vector<std::byte> memory(bytes_of(reads));
  std::vector<std::byte> scratch(plan.scratch_bytes());
  bulk_->read(requests_of(*source_, reads, memory), [](std::size_t) {});
  const PlacedBytes bytes(reads, memory);
  plan.decode_all(bytes, scratch);
  source_->check_unchanged();
  std::vector<std::byte> value;
  for (std::size_t f = 0; f < source_->schema().fields.size(); ++f) {
    const auto field = plan.value(0, f, bytes, scratch);
    value.insert(value.end(), field.begin(), field.end());
  }
  sink({.sample = sample, .key = {}, .value = value});
}

std::optional<ReadOutline> SampleSetAccess::outline(std::span<const SampleRun> runs,
                                                    std::uint64_t gap_bytes) {
  std::vector<std::uint64_t> ids;
  for (const SampleRun& run : runs) {
    for (std::uint64_t i = 0; i < run.count; ++i) ids.push_back(run.sample + i);
  }
  const SamplePlan plan = source_->plan(ids);
  ReadOutline outline{.window_samples = ids.size(), .extents = plan.extents().size()};
  std::uint64_t needed = 0;
  for (const FileExtent& extent : plan.extents()) needed += extent.length;
  const auto reads = place_extents(plan.extents(), gap_bytes);
  outline.reads = reads.size();
  outline.bytes = bytes_of(reads);
  outline.gap_bytes = outline.bytes - needed;
  for (const PlacedExtent& read : reads) {
    outline.largest_read = std::max(outline.largest_read, read.extent.length);
  }
  return outline;
}

std::string SampleSetAccess::describe() const {
  const std::size_t files = source_->files().size();
  const std::uint64_t rows = rows_together(*source_);
  std::string text = source_->format();
  if (files > 1) text += fmt::format(", {} files", files);
  if (rows > 1) text += fmt::format(", decoded {} samples at a time", rows);
  return fmt::format("{}, {}", text, bulk_->describe());
}

std::unique_ptr<PieceReader> SampleSetAccess::make_reader(const ReaderSite& site) {
  const Placement placement = Placement::of(CorePlan::parse(options_.placement), Component::decode);
  const unsigned threads =
      choose_workers(options_.decode_threads, placement, site.node_ranks, kMostDecodeThreads);
  return std::make_unique<SampleSetReader>(SampleSetParts{.source = source_.get(),
                                                          .bulk = std::move(bulk_),
                                                          .gap_bytes = site.gap_bytes,
                                                          .private_bytes = site.private_bytes,
                                                          .threads = threads,
                                                          .placement = placement},
                                           site.list, site.stage, site.root, site.turns);
}

}  // namespace forebay
