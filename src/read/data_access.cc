#include "read/data_access.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "core/log.hpp"
#include "core/worker_pool.hpp"
#include "format/codec/parts_codec.hpp"
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

/// Where mmap is refused and may be replaced, pread takes its place.
void DataAccess::open_files(ReadSetup& setup, const BulkOptions& bulk, Peers& peers) {
  FormatOptions how = format_options(options_, options_.engine);
  how.format = format_;
  how.engine = setup.engine == ReadEngine::mmap && !setup.baseline ? Engine::mmap : Engine::pread;
  how.trust_sidecars = setup.locate == Locate::provenance;
  how.keeps = strategy_row(options_.strategy).keeps;
  how.bulk = bulk;
  how.patience = options_.patience_with_ranks();
  how.ask = [path = path_, timeout = options_.timeout](std::function<void()> step) {
    ask_storage(path, timeout, "tell where its samples are", std::move(step));
  };
  try {
    data_ = open_data_set(path_, how, peers);
  } catch (const Error& error) {
    const bool refused = error.kind() == ErrorKind::unsupported && how.engine == Engine::mmap;
    if (!refused || !setup.may_replace_engine) throw;
    // The same open by pread decides whether it was the mapping or the data set that is refused.
    how.engine = Engine::pread;
    data_ = open_data_set(path_, how);  // only this root may be refused, and walkers need no peers
    log(LogLevel::warning, "reading by pread: {}", error.what());
    setup.engine = ReadEngine::pread;
  }
}

void DataAccess::open(ReadSetup& setup, std::stop_token stop, Peers& peers) {
  open_files(setup, bulk_options(options_, setup, stop), peers);
  const DataSetFacts& facts = data_->facts();
  if (facts.value_bytes == 0 && facts.entries > 0) {
    throw Error(ErrorKind::unsupported, "its samples have no bytes", "name fields that have some",
                {.file = path_});
  }
  consider_sizes(setup, 1, facts.together * facts.sample_bytes);
  // Each request in flight would keep a file of its own open.
  if (!facts.keys_in_bytes && !only_file()) setup.scattered = false;
  // Samples that are not simply records come from a scan where one root would have walked for all.
  if (setup.locate == Locate::scatter && !may_walk(*data_)) setup.locate = Locate::scan;
  if (setup.walks()) walk_ = open_walk(*data_, setup);
  if (walk_ && walk_->fingerprint().text != facts.fingerprint) {
    throw Error(ErrorKind::changed, "data set changed while open",
                "start again once nothing writes to it", {.file = path_});
  }
  if (setup.reads_extents()) {
    const Engine engine = storage_engine(setup, *resolve(data_->whole(), 0).file);
    bulk_ = make_bulk_reader(data_->whole(), engine, bulk_options(options_, setup, stop));
  }
  if (options_.order == OrderName::grouped && options_.group % facts.together != 0) {
    log(LogLevel::info,
        "{}: chunks hold {} samples each, and groups of {} cut them: some are decoded more than "
        "once in an epoch; give --group a multiple",
        path_, facts.together, options_.group);
  }
  setup_ = setup;
  stop_ = std::move(stop);
}

DataFacts DataAccess::facts() const {
  const DataSetFacts& known = data_->facts();
  const bool in_file = known.values == DataSetFacts::Values::in_file;
  DataFacts facts{.entries = known.entries,
                  .stored_bytes = std::max(known.value_bytes, in_file ? data_->stored_bytes() : 0),
                  .local = resolve(data_->whole(), 0).file->is_local(),
                  .assembled = !in_file && !known.parts_stay,
                  .files = {},
                  .parts = known.parts,
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

std::shared_ptr<const File> DataAccess::only_file() const {
  const auto files = data_->files();
  return files.size() == 1 ? files[0] : nullptr;
}

void DataAccess::read_with(std::unique_ptr<BulkReader> own, std::unique_ptr<BulkReader> together) {
  bulk_ = std::move(own);
  // How many reads a part takes must not differ between roots.
  if (data_->facts().keys_in_bytes) together_ = std::move(together);
}

void DataAccess::locate(Peers& peers) {
  if (setup_.reads_extents() && !setup_.walks()) data_->locate(peers, *bulk_);
  if (peers.rank() == 0) tell_notes(data_->facts());
}

void DataAccess::read_sample(std::uint64_t sample, const RecordSink& sink) {
  if (!walk_) {
    try {
      SampleReader::read_one(*data_, *bulk_, sample, sink);
      return data_->check_unchanged();
    } catch (const IndexMismatch& mismatch) {
      data_->check_unchanged();  // a writer at work would explain it as well
      if (!data_->give_up_index(mismatch)) throw;
    }
    SampleReader::read_one(*data_, *bulk_, sample, sink);
    return data_->check_unchanged();
  }
  walk_->seek(sample);
  walk_->read(1, sink);
  walk_->check_unchanged();
}

std::optional<ReadOutline> DataAccess::outline(std::span<const SampleRun> runs,
                                               std::uint64_t gap_bytes) const {
  if (walk_) return std::nullopt;
  return outline_of_runs(runs, *data_, gap_bytes);
}

std::string DataAccess::describe() const {
  std::string text = data_->describe();
  if (walk_) text = fmt::format("locate {}", to_string(setup_.locate));
  const BulkReader* bulk = together_ ? together_.get() : bulk_.get();
  return text + (bulk != nullptr ? fmt::format(", {}", bulk->describe())
                                 : fmt::format(", engine {}", to_string(setup_.engine)));
}

std::unique_ptr<PieceReader> DataAccess::make_reader(const ReaderSite& site) {
  if (!bulk_) {
    return make_walking_reader(*walk_, setup_, site, options_.patience_with_ranks());
  }
  const Placement placement = Placement::of(site.cores, Component::decode);
  PlanReaderParts parts{.data = data_,
                        .bulk = std::move(bulk_),
                        .leave = site.leave,
                        .gap_bytes = site.gap_bytes,
                        .keep_bytes = site.keep_bytes,
                        .private_bytes = site.private_bytes,
                        .threads = choose_workers(options_.decode_threads, placement,
                                                  site.node_ranks, kMostDecodeThreads),
                        .placement = placement};
  if (together_) parts.own = std::exchange(parts.bulk, std::move(together_));
  if (walk_) read_scattered(*data_, site, options_.patience_with_ranks(), parts);
  if (site.in_place && !walk_) parts.mapped = mapped_ = map_beside();
  if (mapped_ && setup_.large_apart()) {
    parts.filler = std::make_unique<PageCacheFiller>(mapped_, stop_);
  }
  if (const auto& own = strategy_row(options_.strategy).make_reader) {
    return own(std::move(parts), site);
  }
  return std::make_unique<PlanReader>(std::move(parts), site.list, site.stage, site.root,
                                      site.turns);
}

/// The file once more, mapped, where that is for us to choose and the page cache can be asked; else
/// null. Page faults on other nodes' storage would come one at a time, without an end.
std::shared_ptr<const MmapFile> DataAccess::map_beside() const {
  const DataSetFacts& facts = data_->facts();
  const auto file = only_file();
  const bool fits = facts.keys_in_bytes && facts.values == DataSetFacts::Values::in_file && file;
  const bool ours = options_.strategy == Strategy::automatic &&
                    options_.engine == ReadEngine::automatic && !options_.direct;
  if (!fits || !ours || file->descriptor() < 0 || !file->is_local()) return nullptr;
  try {
    auto mapped = std::make_shared<MmapFile>(file->path());
    const auto was = file->fingerprint(), is = mapped->fingerprint();
    return was.device == is.device && was.inode == is.inode ? mapped : nullptr;
  } catch (const Error& error) {
    log(LogLevel::debug, "nothing is used in place: {}", error.what());
    return nullptr;
  }
}

void DataAccess::check_in_place() const {
  if (!mapped_) return;
  mapped_->check();
  data_->check_unchanged();
}

std::string DataAccess::describe_in_place() const {
  if (!mapped_) return {};
  return setup_.large_apart()
             ? "records are used in the page cache, and brought there where they are not"
             : "records in the page cache are used there, not read";
}

}  // namespace forebay
