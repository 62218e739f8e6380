#include "read/data_access.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "core/log.hpp"
#include "core/worker_pool.hpp"
#include "format/codec/codecs.hpp"
#include "read/plan_reader.hpp"
#include "read/strategy_table.hpp"
#include "read/walk/walks.hpp"
#include "storage/joined_file.hpp"
#include "storage/page_cache_filler.hpp"
#include "storage/storages.hpp"

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
          .window_step = options.step,
          .convention = options.convention,
          .order_by = options.order_by,
          .leave_out = options.leave_out,
          .keep_records = options.keep_records,
          .bulk = {}};
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
    const bool known = wanted.schema.empty() && !facts.codecs.empty();
    return {.codec = known ? codec_beside(wanted.codec, facts.codecs[0], true) : wanted.codec,
            .schema = wanted.schema};
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

CodecOptions codec_of_arrays(const DataSetFacts& facts, const CodecOptions& wanted) {
  CodecOptions codec = codec_of(facts, wanted);
  if (codec.codec == "bytes") return codec;
  for (const Field& field : facts.schema.fields) {
    if (field.elements() > 0) continue;
    throw Error(ErrorKind::unsupported,
                fmt::format("samples of '{}' have no values: their shape is {}", field.name,
                            to_string(Schema{{field}})),
                "name fields that have some", {.file = facts.path});
  }
  return codec;
}

namespace {

/// Where mmap is refused and may be replaced, pread takes its place.
std::shared_ptr<DataSet> open_files(const std::string& path, const std::string& format,
                                    const LoaderOptions& options, ReadSetup& setup,
                                    const BulkOptions& bulk, Peers& peers) {
  FormatOptions how = format_options(options, options.engine);
  how.format = format;
  how.engine = setup.engine == ReadEngine::mmap && !setup.baseline ? Engine::mmap : Engine::pread;
  how.trust_sidecars = setup.locate == Locate::provenance;
  how.keeps = strategy_row(options.strategy).keeps;
  how.bulk = bulk;
  how.patience = options.patience_with_ranks();
  how.ask = [path, timeout = options.timeout](std::function<void()> step) {
    ask_storage(path, timeout, "tell where its samples are", std::move(step));
  };
  try {
    return open_data_set(path, how, peers);
  } catch (const Error& error) {
    const bool refused = error.kind() == ErrorKind::unsupported && how.engine == Engine::mmap;
    if (!refused || !setup.may_replace_engine) throw;
    // The same open by pread decides whether it was the mapping or the data set that is refused.
    how.engine = Engine::pread;
    auto data = open_data_set(path, how);  // only this root may be refused; walkers need no peers
    log(LogLevel::warning, "reading by pread: {}", error.what());
    setup.engine = ReadEngine::pread;
    return data;
  }
}

void tell_of_cut_groups(const DataSetFacts& facts, const LoaderOptions& options) {
  if (options.order != OrderName::grouped || options.group % facts.together == 0) return;
  log(LogLevel::info,
      "{}: chunks hold {} samples each, and groups of {} cut them: some are decoded more than "
      "once in an epoch; give --group a multiple",
      facts.path, facts.together, options.group);
}

}  // namespace

OpenedData open_to_read(const std::string& path, const std::string& format,
                        const LoaderOptions& options, ReadSetup& setup, const std::stop_token& stop,
                        Peers& peers) {
  OpenedData opened;
  opened.data = open_files(path, format, options, setup, bulk_options(options, setup, stop), peers);
  const DataSetFacts& facts = opened.data->facts();
  if (facts.value_bytes == 0 && facts.entries > 0) {
    throw Error(ErrorKind::unsupported,
                fmt::format("its samples have no bytes{}{}",
                            facts.schema.fields.empty() ? "" : ": ", to_string(facts.schema)),
                "name fields that have some", {.file = path});
  }
  consider_sizes(setup, 1, facts.together * facts.sample_bytes);
  // Each request in flight would keep a file of its own open.
  if (!facts.keys_in_bytes && !opened.only_file()) setup.scattered = false;
  // Samples that are not simply records come from a scan where one root would have walked for all.
  if (setup.locate == Locate::scatter && !may_walk(*opened.data)) setup.locate = Locate::scan;
  if (setup.walks()) opened.walk = open_walk(*opened.data, setup);
  if (opened.walk && opened.walk->fingerprint().text != facts.fingerprint) {
    throw Error(ErrorKind::changed, "data set changed while open",
                "start again once nothing writes to it", {.file = path});
  }
  if (setup.reads_extents()) {
    const Engine engine = storage_engine(setup, *resolve(opened.data->whole(), 0).file);
    opened.bulk =
        make_bulk_reader(opened.data->whole(), engine, bulk_options(options, setup, stop));
  }
  tell_of_cut_groups(facts, options);
  return opened;
}

std::shared_ptr<const File> OpenedData::only_file() const {
  const auto files = data->files();
  return files.size() == 1 ? files[0] : nullptr;
}

DataAccess::DataAccess(OpenedData opened, const LoaderOptions& options, const ReadSetup& setup,
                       std::stop_token stop)
    : opened_(std::move(opened)), options_(options), setup_(setup), stop_(std::move(stop)) {
  // How many reads a part takes must not differ between roots.
  if (!opened_.data->facts().keys_in_bytes) opened_.together = nullptr;
}

DataFacts DataAccess::facts() const {
  const DataSetFacts& known = opened_.data->facts();
  const bool in_file = known.values == DataSetFacts::Values::in_file;
  const FilePlace begin = resolve(opened_.data->whole(), 0);
  DataFacts facts{
      .entries = known.entries,
      .file_bytes = opened_.data->stored_bytes(),
      .stored_bytes = std::max(known.value_bytes, in_file ? opened_.data->stored_bytes() : 0),
      .local = begin.file->is_local(),
      .servers = begin.file->stripes(0).servers,
      .assembled = !in_file && !known.parts_stay,
      .files = {},
      .parts = known.parts,
      .classes = known.labels,
      .fingerprint = known.fingerprint};
  // Samples of any size lie apart in the stage, with their names.
  if (known.schema.fields.empty() && !known.keys_in_bytes) {
    facts.stored_bytes += known.key_bytes + known.entries * kApartBytes;
  }
  if (known.of_files.size() < 2) return facts;
  std::uint64_t first = 0;
  for (const std::uint64_t samples : known.of_files) {
    if (samples > 0) facts.files.push_back(first);
    first += samples;
  }
  facts.files.push_back(first);
  return facts;
}

void DataAccess::locate(Peers& peers) {
  if (setup_.reads_extents() && !setup_.walks()) opened_.data->locate(peers, *opened_.bulk);
  if (peers.rank() == 0) tell_notes(opened_.data->facts());
}

void DataAccess::read_sample(std::uint64_t sample, const RecordSink& sink) {
  if (!opened_.walk) {
    auto reader = SampleReader::by(*opened_.data, fetch_through(*opened_.data, *opened_.bulk));
    reader.read(std::span(&sample, 1));
    sink({.sample = sample, .key = reader.key(0), .value = reader.value(0)});
    return opened_.data->check_unchanged();
  }
  opened_.walk->seek(sample);
  opened_.walk->read(1, sink);
  opened_.walk->check_unchanged();
}

std::optional<ReadOutline> DataAccess::outline(std::span<const SampleRun> runs,
                                               std::uint64_t gap_bytes) const {
  if (opened_.walk) return std::nullopt;
  return outline_of_runs(runs, *opened_.data, gap_bytes);
}

std::optional<std::uint64_t> DataAccess::stage_bytes(std::span<const SampleRun> runs) const {
  if (opened_.walk) return std::nullopt;
  using enum DataSetFacts::Values;
  const DataSetFacts& facts = opened_.data->facts();
  std::vector<IdRun> ids;
  for (const SampleRun& run : runs) ids.push_back({run.sample, run.count});
  const auto plan = opened_.data->plan_runs(ids);
  if (facts.values == in_scratch || plan->scratch_bytes() > 0) return plan->scratch_bytes();
  const std::uint64_t read = bytes_of(place_extents(plan->extents(), 0));
  // What surrounds the parts is left out when they are put together.
  return facts.values == in_parts && facts.decodes ? read / 2 : read;
}

std::string DataAccess::describe() const {
  std::string text = opened_.data->describe();
  if (opened_.walk) text = fmt::format("locate {}", to_string(setup_.locate));
  const BulkReader* bulk = opened_.together ? opened_.together.get() : opened_.bulk.get();
  return text + (bulk != nullptr ? fmt::format(", {}", bulk->describe())
                                 : fmt::format(", engine {}", to_string(setup_.engine)));
}

StageReader DataAccess::make_reader(const ReaderSite& site) {
  if (!opened_.bulk) {
    return {make_walking_reader(*opened_.walk, setup_, site, options_.patience_with_ranks()), {}};
  }
  const Placement placement = Placement::of(site.cores, Component::decode);
  PlanReaderParts parts{.data = opened_.data,
                        .bulk = std::move(opened_.bulk),
                        .leave = site.leave,
                        .gap_bytes = site.gap_bytes,
                        .keep_bytes = site.keep_bytes,
                        .private_bytes = site.private_bytes,
                        .threads = choose_workers(options_.decode_threads, placement,
                                                  site.node_ranks, kMostDecodeThreads),
                        .placement = placement};
  if (opened_.together) parts.own = std::exchange(parts.bulk, std::move(opened_.together));
  if (opened_.walk) read_scattered(*opened_.data, site, options_.patience_with_ranks(), parts);
  if (const auto& own = strategy_row(options_.strategy).make_reader) {
    return {own(std::move(parts), site), {}};
  }
  auto in_place = use_in_place(site);
  if (in_place) {
    parts.mapped.assign(in_place->files().begin(), in_place->files().end());
    parts.in_place = in_place->points();
    if (in_place->brings()) {
      parts.filler = std::make_unique<PageCacheFiller>(in_place->files()[0], stop_);
    }
  }
  auto reader =
      std::make_unique<PlanReader>(std::move(parts), site.list, site.stage, site.root, site.turns);
  return {std::move(reader), std::move(in_place)};
}

namespace {

/// `files` once more, mapped; empty where the page cache cannot be asked of all. Page faults on
/// other nodes' storage would come one at a time, without an end.
InPlace::Files map_beside(std::span<const std::shared_ptr<const File>> files) {
  constexpr std::size_t kMostMapped = 128;
  InPlace::Files mapped;
  if (files.size() > kMostMapped) return mapped;
  for (const auto& file : files) {
    if (file->descriptor() < 0 || !file->is_local()) return {};
    mapped.push_back(std::make_shared<MmapFile>(file->path()));
    const auto was = file->fingerprint(), is = mapped.back()->fingerprint();
    if (was.device != is.device || was.inode != is.inode) return {};
  }
  return mapped;
}

}  // namespace

/// Where it is for us to choose: records, that entries can point at; and members of any size, which
/// are put together from there.
std::shared_ptr<const InPlace> DataAccess::use_in_place(const ReaderSite& site) const {
  const DataSetFacts& facts = opened_.data->facts();
  const bool ours = options_.strategy == Strategy::automatic &&
                    options_.engine == ReadEngine::automatic && !options_.direct;
  using enum DataSetFacts::Values;
  const bool members = !facts.keys_in_bytes && facts.schema.fields.empty();
  const bool records = facts.keys_in_bytes && facts.values == in_file;
  const bool pointed = facts.values == in_file ? opened_.only_file() != nullptr
                                               : members && facts.values == in_parts;
  const bool points = site.in_place && (members || records) && pointed;
  if (!ours || opened_.walk || !(points || members)) return nullptr;
  try {
    auto mapped = map_beside(opened_.data->files());
    if (mapped.empty()) return nullptr;
    return std::make_shared<InPlace>(opened_.data, std::move(mapped), points,
                                     points && records && setup_.large_apart());
  } catch (const Error& error) {
    log(LogLevel::debug, "nothing is used in place: {}", error.what());
    return nullptr;
  }
}

void InPlace::check() const {
  if (!points_) return;
  for (const auto& file : files_) file->check();
  data_->check_unchanged();
}

std::string InPlace::describe() const {
  if (!data_->facts().keys_in_bytes) {
    return points_ ? "samples in the page cache are used there, not read"
                   : "samples in the page cache are copied from there, not read";
  }
  return brings_ ? "records are used in the page cache, and brought there where they are not"
                 : "records in the page cache are used there, not read";
}

}  // namespace forebay
