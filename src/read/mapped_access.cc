#include "read/mapped_access.hpp"

#include <fmt/format.h>

#include <utility>

#include "comm/values.hpp"
#include "core/log.hpp"
#include "format/codec/parts_codec.hpp"
#include "read/extent_reader.hpp"
#include "storage/joined_file.hpp"
#include "storage/shifted_reader.hpp"
#include "storage/storages.hpp"

namespace forebay {

convention::ConventionOptions convention_options(const LoaderOptions& options) {
  return {.convention = options.convention, .order_by = options.order_by};
}

void MappedAccess::open(ReadSetup& setup, std::stop_token stop, Peers&) {
  set_ = std::make_shared<convention::DatabaseSet>(
      path_, convention::OpenOptions{
                 .engine = setup.engine == ReadEngine::mmap ? Engine::mmap : Engine::pread,
                 .hold = true,
                 .convention = convention_options(options_)});
  source_ = std::make_unique<convention::MappedSource>(set_);
  consider_sizes(setup, set_->samples(), set_->stored_bytes());
  const Engine engine = storage_engine(setup, *resolve(set_->whole(), 0).file);
  bulk_ = make_bulk_reader(set_->whole(), engine, bulk_options(options_, setup, std::move(stop)));
}

DataFacts MappedAccess::facts() const {
  const convention::Convention& convention = set_->convention();
  DataFacts facts{.entries = set_->samples(),
                  .stored_bytes = set_->stored_bytes(),
                  .local = resolve(set_->whole(), 0).file->is_local(),
                  .assembled = false,
                  .files = convention.bounds(),
                  .parts = convention.part_names(),
                  .fingerprint = set_->fingerprint().text};
  // What is put together lies in the stage behind what it was made of.
  if (convention.has_parts()) facts.stored_bytes *= 2;
  return facts;
}

// Ranks that read nothing take part in what all do together: they hear how many databases there
// are.
void MappedAccess::locate(const ReadSetup& setup, const LocatingRanks& ranks) {
  std::uint64_t databases = set_ ? set_->size() : 0;
  share_value(ranks.world, databases);
  std::vector<convention::IndexedRecords> indexes;
  for (std::size_t d = 0; d < databases; ++d) locate_database(setup, ranks, d, indexes);
  if (!set_) return;
  if (ranks.world.rank() == 0) {
    log(LogLevel::info, "{}: {} samples, {}: {}", path_, set_->samples(), set_->convention().text(),
        set_->convention().databases()[0].why);
  }
  index_ = std::make_unique<convention::MappedIndex>(set_->shared_convention(), std::move(indexes));
}

void MappedAccess::locate_database(const ReadSetup& setup, const LocatingRanks& ranks,
                                   std::size_t number,
                                   std::vector<convention::IndexedRecords>& indexes) {
  std::optional<ShiftedReader> reader;
  if (set_) reader.emplace(*bulk_, set_->begin(number));
  Located located = locate_records(
      {.world = ranks.world,
       .node = ranks.node,
       .roots = ranks.roots,
       .database = set_ ? &set_->database(number) : nullptr,
       .reader = reader ? &*reader : nullptr,
       .locate = setup.locate,
       .may_cache = options_.strategy == Strategy::automatic,
       .timeout = options_.patience_with_ranks(),
       .ask = [this](std::function<void()> step) {
         ask_storage(path_, options_.timeout, "tell where its samples are",
                     [self = shared_from_this(), step = std::move(step)] { step(); });
       }});
  index_memory_.push_back(std::move(located.memory));
  if (number == 0) how_ = located.how;
  if (set_) indexes.push_back({.index = std::move(located.index), .begin = set_->begin(number)});
}

std::uint64_t MappedAccess::index_bytes() const {
  std::uint64_t bytes = 0;
  for (const auto& memory : index_memory_) bytes += memory->bytes().size();
  return bytes;
}

CodecOptions MappedAccess::codec(const CodecOptions& wanted) const {
  if (!set_->convention().has_parts()) return wanted;
  CodecOptions options = wanted;
  options.codec = parts_codec_text(set_->convention().part_names(), wanted.codec);
  return options;
}

void MappedAccess::read_sample(std::uint64_t sample, const RecordSink& sink) {
  forebay::read_sample(*source_, bulk_.get(), index_.get(), sample, sink);
  source_->check_unchanged();
}

std::optional<ReadOutline> MappedAccess::outline(std::span<const SampleRun> runs,
                                                 std::uint64_t gap_bytes) {
  if (!index_) return std::nullopt;
  return outline_of_runs(runs, *index_, gap_bytes);
}

std::string MappedAccess::describe() const {
  const BulkReader* bulk = together_ ? together_.get() : bulk_.get();
  return fmt::format("{}, {}, {}", set_->convention().text(), how_, bulk->describe());
}

std::unique_ptr<PieceReader> MappedAccess::make_reader(const ReaderSite& site) {
  ExtentReaderParts parts{
      .source = source_.get(),
      .index = std::move(index_),
      .prepare = {},
      .leave = site.leave,
      .replace = [set = set_, bulk = bulk_.get()]() -> std::unique_ptr<RecordIndex> {
        std::vector<convention::IndexedRecords> indexes;
        for (std::size_t d = 0; d < set->size(); ++d) {
          ShiftedReader reader(*bulk, set->begin(d));
          indexes.push_back(
              {.index = scan_alone(set->database(d), reader), .begin = set->begin(d)});
        }
        return std::make_unique<convention::MappedIndex>(set->shared_convention(),
                                                         std::move(indexes));
      }};
  return make_extent_reader(site, std::move(parts), std::move(bulk_), std::move(together_));
}

}  // namespace forebay
