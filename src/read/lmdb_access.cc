#include "read/lmdb_access.hpp"

#include <fmt/format.h>

#include <utility>

#include "core/log.hpp"
#include "format/lmdb/lmdb_source.hpp"
#include "read/handoff_reader.hpp"
#include "read/scattered_index.hpp"
#include "read/walk_reader.hpp"
#include "storage/page_cache_filler.hpp"
#include "storage/storages.hpp"

namespace forebay {

void LmdbAccess::open_with(Engine engine) {
  auto source = std::make_unique<lmdb::LmdbSource>(lmdb::Database::open(path_, engine));
  database_ = &source->database();
  source_ = std::move(source);
}

/// Where mmap is refused and may be replaced, pread takes its place.
void LmdbAccess::open_mapped(ReadSetup& setup) {
  try {
    open_with(Engine::mmap);
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::unsupported || !setup.may_replace_engine) throw;
    // The same open by pread decides whether it was the mapping or the data set that is refused.
    open_with(Engine::pread);
    log(LogLevel::warning, "reading by pread: {}", error.what());
    setup.engine = ReadEngine::pread;
  }
}

void LmdbAccess::open(ReadSetup& setup, std::stop_token stop, Peers&) {
  if (setup.baseline) {
    source_ = open_records(path_, SourceEngine::liblmdb);
  } else if (setup.engine == ReadEngine::mmap) {
    open_mapped(setup);
  } else {
    open_with(Engine::pread);
  }
  if (!setup.baseline && setup.reads_extents()) {
    const auto& file = database_->snapshot().shared_file();
    consider_sizes(setup, source_->entries(), source_->stored_bytes());
    large_apart_ = setup.scattered && !setup.small;
    stop_ = stop;
    bulk_ = make_bulk_reader(file, storage_engine(setup, *file),
                             bulk_options(options_, setup, std::move(stop)));
  }
  engine_ = setup.engine;
}

DataFacts LmdbAccess::facts() const {
  return {.entries = source_->entries(),
          .stored_bytes = source_->stored_bytes(),
          .local = database_ != nullptr && database_->snapshot().shared_file()->is_local(),
          .assembled = false,
          .files = {},
          .parts = {},
          .fingerprint = source_->fingerprint().text};
}

void LmdbAccess::locate(const ReadSetup& setup, const LocatingRanks& ranks) {
  how_ = setup.locate;
  if (how_ != Locate::provenance && how_ != Locate::scan) return;
  located_ = locate_records({.world = ranks.world,
                             .node = ranks.node,
                             .roots = ranks.roots,
                             .database = database_,
                             .reader = bulk_.get(),
                             .locate = how_,
                             .may_cache = options_.strategy == Strategy::automatic,
                             .timeout = options_.patience_with_ranks(),
                             .ask = [this](std::function<void()> step) {
                               ask_storage(
                                   path_, options_.timeout, "tell where its samples are",
                                   [self = shared_from_this(), step = std::move(step)] { step(); });
                             }});
}

void LmdbAccess::read_sample(std::uint64_t sample, const RecordSink& sink) {
  forebay::read_sample(*source_, bulk_.get(), located_.index.get(), sample, sink);
  source_->check_unchanged();
}

std::optional<ReadOutline> LmdbAccess::outline(std::span<const SampleRun> runs,
                                               std::uint64_t gap_bytes) {
  if (!located_.index) return std::nullopt;
  return outline_of_runs(runs, *located_.index, gap_bytes);
}

std::string LmdbAccess::describe() const {
  std::string text =
      located_.how.empty() ? fmt::format("locate {}", to_string(how_)) : located_.how;
  const BulkReader* bulk = together_ ? together_.get() : bulk_.get();
  return text + (bulk != nullptr ? fmt::format(", {}", bulk->describe())
                                 : fmt::format(", engine {}", to_string(engine_)));
}

std::unique_ptr<PieceReader> LmdbAccess::make_reader(const ReaderSite& site) {
  if (how_ == Locate::handoff) return hand_on(site);
  if (how_ == Locate::scatter) return read_scattered(site);
  if (bulk_) return read_extents(site, {}, {});
  return std::make_unique<WalkReader>(*source_, site.list, site.stage, site.root, site.turns);
}

/// The file once more, mapped, where that is for us to choose and the page cache can be asked; else
/// null. Page faults on other nodes' storage would come one at a time, without an end.
std::shared_ptr<const MmapFile> LmdbAccess::map_beside() const {
  const bool ours = options_.strategy == Strategy::automatic &&
                    options_.engine == ReadEngine::automatic && !options_.direct;
  const auto& file = database_->snapshot().shared_file();
  if (!ours || file->descriptor() < 0 || !file->is_local()) return nullptr;
  try {
    auto mapped = std::make_shared<MmapFile>(file->path());
    const auto was = file->fingerprint(), is = mapped->fingerprint();
    return was.device == is.device && was.inode == is.inode ? mapped : nullptr;
  } catch (const Error& error) {
    log(LogLevel::debug, "nothing is used in place: {}", error.what());
    return nullptr;
  }
}

void LmdbAccess::check_in_place() const {
  if (!mapped_) return;
  mapped_->check();
  database_->check_unchanged();
}

std::string LmdbAccess::describe_in_place() const {
  if (!mapped_) return {};
  return large_apart_ ? "records are used in the page cache, and brought there where they are not"
                      : "records in the page cache are used there, not read";
}

std::unique_ptr<PieceReader> LmdbAccess::hand_on(const ReaderSite& site) {
  HandoffParts parts{.source = static_cast<lmdb::LmdbSource&>(*source_),
                     .plan = HandOffPlan(site.map, site.first_iteration, site.end_iteration),
                     .me = site.roots->rank(),
                     .link = CursorLink(site.roots, options_.patience_with_ranks()),
                     .give_up = site.give_up};
  return std::make_unique<HandoffReader>(std::move(parts), *site.plan, site.stage, site.root,
                                         site.turns);
}

std::unique_ptr<PieceReader> LmdbAccess::read_scattered(const ReaderSite& site) {
  auto scattered = std::make_unique<ScatteredIndex>(*database_, site.map, site.roots,
                                                    options_.patience_with_ranks(), site.give_up);
  ScatteredIndex* index = scattered.get();
  located_.index = std::move(scattered);
  return read_extents(
      site, [index](const WindowPart& part) { index->prepare(part); }, [index] { index->leave(); });
}

std::unique_ptr<PieceReader> LmdbAccess::read_extents(const ReaderSite& site, PrepareIndex prepare,
                                                      std::function<void()> leave) {
  lmdb::Database& database = *database_;
  BulkReader& bulk = *bulk_;
  ExtentReaderParts parts{.source = source_.get(),
                          .index = std::move(located_.index),
                          .prepare = std::move(prepare),
                          .leave =
                              [first = site.leave, then = std::move(leave)] {
                                if (first) first();
                                if (then) then();
                              },
                          .replace = [&database, &bulk] { return scan_alone(database, bulk); }};
  if (site.in_place) parts.mapped = mapped_ = map_beside();
  if (mapped_ && large_apart_) {
    parts.filler = std::make_unique<PageCacheFiller>(mapped_, stop_);
  }
  return make_extent_reader(site, std::move(parts), std::move(bulk_), std::move(together_));
}

}  // namespace forebay
