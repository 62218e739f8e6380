// LMDB databases behind Samples: one index over all of them, and plain reads.
#include <algorithm>
#include <cstdlib>
#include <new>
#include <optional>

#include "core/log.hpp"
#include "format/codec/parts_codec.hpp"
#include "format/convention/database_set.hpp"
#include "format/convention/key_words.hpp"
#include "format/convention/mapped_index.hpp"
#include "format/lmdb/leaf_index.hpp"
#include "read/locate.hpp"
#include "read/mapped_access.hpp"
#include "read/mapped_bytes.hpp"
#include "read/private_memory.hpp"
#include "read/read_plan.hpp"
#include "read/samples/sample_store.hpp"
#include "storage/page_cache.hpp"

namespace forebay {
namespace {

using convention::DatabaseSet;

// Read along rather than asked for apart.
constexpr std::uint64_t kGapBytes = 4096;
// Consecutive samples that are located in one go.
constexpr std::uint64_t kMostInARun = 4096;

/// An index with memory of this process alone: taken when it is touched.
class PrivateIndex final : public RecordIndex {
 public:
  PrivateIndex(std::unique_ptr<lmdb::LeafProducer> leaves, lmdb::Database& database)
      : facts_(lmdb::facts_of(database)),
        bytes_(lmdb::required_bytes(*leaves, facts_)),
        memory_(static_cast<std::byte*>(std::calloc(1, std::max<std::uint64_t>(bytes_, 1)))) {
    if (memory_ == nullptr) throw std::bad_alloc();
    index_.emplace(std::move(leaves), facts_, database.pages(),
                   lmdb::IndexMemory{.bytes = {memory_.get(), bytes_}});
  }

  std::uint64_t entries() const override { return index_->entries(); }
  void extents(std::uint64_t first, std::uint64_t count, std::vector<Extent>& out) override {
    index_->extents(first, count, out);
  }
  void unpack(std::uint64_t first, std::uint64_t count, const ExtentBytes& bytes,
              const RecordSink& sink) override {
    index_->unpack(first, count, bytes, sink);
  }
  std::uint64_t memory_bytes() const override { return index_->memory_bytes(); }

 private:
  struct Free {
    void operator()(std::byte* memory) const { std::free(memory); }
  };
  lmdb::TreeFacts facts_;
  std::uint64_t bytes_;
  std::unique_ptr<std::byte, Free> memory_;
  std::optional<lmdb::LeafIndex> index_;
};

/// The bytes of all mapped databases, in place.
class BytesOfSet final : public ExtentBytes {
 public:
  explicit BytesOfSet(const DatabaseSet& set) : set_(set) {}
  std::span<const std::byte> at(std::uint64_t offset, std::uint64_t length) const override {
    std::size_t number = set_.size() - 1;
    while (number > 0 && set_.begin(number) > offset) --number;
    const MappedBytes bytes(set_.database(number).snapshot().file().map());
    return bytes.at(offset - set_.begin(number), length);
  }

 private:
  const DatabaseSet& set_;
};

/// Samples whose ids follow each other.
struct IdRun {
  std::uint64_t first = 0;
  std::uint64_t count = 0;
};

class LmdbStore final : public SampleStore {
 public:
  LmdbStore(const std::string& dataset, const LoaderOptions& options, bool hold)
      : options_(options),
        mapped_(options.engine == ReadEngine::mmap),
        set_(dataset, {.engine = mapped_ ? Engine::mmap : Engine::pread,
                       .hold = hold,
                       .convention = convention_options(options)}),
        part_names_(set_.convention().part_names()) {
    expect_reads(*set_.whole(), Reads::forward);
  }

  const std::string& path() const override { return set_.path(); }
  std::uint64_t entries() const override { return set_.samples(); }
  std::span<const std::string> parts() const override { return part_names_; }
  CodecOptions codec_options() const override {
    if (part_names_.empty()) return {.codec = options_.codec, .schema = options_.schema};
    return {.codec = parts_codec_text(part_names_, options_.codec), .schema = options_.schema};
  }
  std::string fingerprint() const override { return set_.fingerprint().text; }
  Json info() const override;
  void read(std::span<const std::uint64_t> ids, const Samples::Sink& sink) const override;
  void keys(const Samples::KeySink& sink) const override;

 private:
  struct Found {
    std::uint64_t id = 0;
    std::span<const std::byte> key;
    std::span<const std::byte> value;
  };
  /// The samples of some runs, and the memory that they lie in.
  struct Chunk {
    std::vector<IdRun> runs;
    ReadPlan plan;
    PrivateMemory memory;
    std::vector<std::vector<std::byte>> packed;
    std::vector<Found> found;
  };

  RecordIndex& index(bool trust) const;
  std::size_t locate(std::span<const IdRun> runs, Chunk& chunk) const;
  void bring(Chunk& chunk) const;
  void bring_again(Chunk& chunk) const;
  void unpack(Chunk& chunk, const ExtentBytes& bytes) const;

  LoaderOptions options_;
  bool mapped_;
  DatabaseSet set_;
  std::vector<std::string> part_names_;
  mutable std::mutex mutex_;  ///< of the index
  mutable std::unique_ptr<RecordIndex> index_;
};

/// Under the mutex. `trust`: a sidecar may tell where the leaves are.
RecordIndex& LmdbStore::index(bool trust) const {
  if (index_ && trust) return *index_;
  std::vector<convention::IndexedRecords> indexes;
  for (std::size_t d = 0; d < set_.size(); ++d) {
    lmdb::Database& database = set_.database(d);
    auto leaves = find_leaves_alone(database, trust, options_.strategy == Strategy::automatic);
    indexes.push_back({.index = std::make_unique<PrivateIndex>(std::move(leaves), database),
                       .begin = set_.begin(d)});
  }
  if (set_.plain()) {
    index_ = std::move(indexes[0].index);
  } else {
    index_ =
        std::make_unique<convention::MappedIndex>(set_.shared_convention(), std::move(indexes));
  }
  return *index_;
}

/// Locates the first of `runs`, as many as may be in memory at once; returns how many.
std::size_t LmdbStore::locate(std::span<const IdRun> runs, Chunk& chunk) const {
  std::vector<Extent> extents;
  std::uint64_t bytes = 0;
  std::size_t taken = 0;
  {
    const std::scoped_lock lock(mutex_);
    RecordIndex& index = this->index(true);
    while (taken < runs.size() && bytes < kReadAtOnce) {
      const std::size_t before = extents.size();
      index.extents(runs[taken].first, runs[taken].count, extents);
      ++taken;
      for (std::size_t i = before; i < extents.size(); ++i) bytes += extents[i].length;
    }
  }
  chunk.runs.assign(runs.begin(), runs.begin() + static_cast<std::ptrdiff_t>(taken));
  chunk.plan = plan_reads(extents, kGapBytes);
  return taken;
}

void LmdbStore::bring(Chunk& chunk) const {
  if (mapped_) {
    const std::scoped_lock lock(mutex_);
    return unpack(chunk, BytesOfSet(set_));
  }
  const auto memory = chunk.memory.get(chunk.plan.bytes);
  for (const PlannedRead& read : chunk.plan.reads) {
    set_.whole()->read(read.offset, memory.subspan(read.place, read.length));
  }
  const std::scoped_lock lock(mutex_);
  unpack(chunk, PlannedBytes(chunk.plan, memory));
}

/// Under the mutex.
void LmdbStore::unpack(Chunk& chunk, const ExtentBytes& bytes) const {
  chunk.found.clear();
  chunk.packed.clear();
  for (const IdRun& run : chunk.runs) {
    index_->unpack(run.first, run.count, bytes, [&](const Record& record) {
      Found found{.id = record.sample, .key = record.key, .value = record.value};
      if (!part_names_.empty()) {
        found.value = chunk.packed.emplace_back(record.value.begin(), record.value.end());
      }
      chunk.found.push_back(found);
    });
  }
}

/// What the index said was wrong: with one of which nothing comes from a sidecar.
void LmdbStore::bring_again(Chunk& chunk) const {
  set_.check_unchanged();  // a writer at work would explain it as well
  {
    const std::scoped_lock lock(mutex_);
    index(false);
  }
  Chunk again;
  if (locate(chunk.runs, again) == chunk.runs.size()) {
    bring(again);
    chunk = std::move(again);
    return;
  }
  throw Error(ErrorKind::corrupt, "the records take more room than the sidecar has said",
              "remove the sidecar", {.file = path()});
}

std::vector<IdRun> runs_of(std::span<const std::uint64_t> ids, std::span<const std::size_t> order) {
  std::vector<IdRun> runs;
  for (const std::size_t position : order) {
    const std::uint64_t id = ids[position];
    if (!runs.empty()) {
      IdRun& last = runs.back();
      if (id < last.first + last.count) continue;  // a repeat
      if (id == last.first + last.count && last.count < kMostInARun) {
        ++last.count;
        continue;
      }
    }
    runs.push_back({id, 1});
  }
  return runs;
}

void LmdbStore::read(std::span<const std::uint64_t> ids, const Samples::Sink& sink) const {
  const std::vector<std::size_t> order = in_order(ids);
  const std::vector<IdRun> runs = runs_of(ids, order);
  std::size_t next = 0;  // of order
  for (std::size_t done = 0; done < runs.size();) {
    Chunk chunk;
    done += locate(std::span(runs).subspan(done), chunk);
    try {
      bring(chunk);
    } catch (const IndexMismatch& mismatch) {
      log(LogLevel::warning, "the index does not fit the data and is not used: {}",
          mismatch.what());
      bring_again(chunk);
    }
    set_.check_unchanged();
    for (const Found& found : chunk.found) {
      for (; next < order.size() && ids[order[next]] == found.id; ++next) {
        sink({.position = order[next], .id = found.id, .key = found.key, .value = found.value});
      }
    }
  }
}

/// By a reader of its own: others may look samples up meanwhile.
void LmdbStore::keys(const Samples::KeySink& sink) const {
  const convention::Convention::Part& part = set_.convention().parts()[0];
  const auto hand_over = [&](std::uint64_t id, std::string_view key) {
    sink(id, convention::key_bytes(key.substr(std::min(part.prefix.size(), key.size()))));
  };
  std::vector<std::string> keys;
  for (std::size_t d = 0; d < set_.size(); ++d) {
    lmdb::Database own =
        lmdb::Database::open(set_.database(d).shared_snapshot(), set_.database(d).name(), true);
    convention::for_each_key(own, [&](std::uint64_t record, std::string_view key) {
      if (set_.plain()) {
        hand_over(record, key);
      } else {
        keys.emplace_back(key);
      }
      return true;
    });
  }
  set_.check_unchanged();
  if (set_.plain()) return;
  std::uint64_t id = 0;
  part.records.for_each_run(0, entries(), [&](std::uint64_t record, std::uint64_t count) {
    for (std::uint64_t i = 0; i < count; ++i) hand_over(id++, keys[record + i]);
  });
}

SampleStore::Json LmdbStore::info() const {
  Json databases = Json::array();
  for (std::size_t d = 0; d < set_.size(); ++d) {
    const convention::DatabaseNote& note = set_.convention().databases()[d];
    Json metadata = Json::array();
    for (const convention::MetadataRecord& record : note.metadata) {
      Json one{{"key", record.key}, {"value_bytes", record.value_bytes}, {"count", nullptr}};
      if (!record.counts.empty()) one["count"] = record.counts[0];
      metadata.push_back(std::move(one));
    }
    databases.push_back({{"path", note.path},
                         {"records", note.records},
                         {"stored_bytes", set_.database(d).stored_bytes()},
                         {"convention", to_string(note.convention)},
                         {"why", note.why},
                         {"metadata", metadata}});
  }
  return {{"path", path()},
          {"format", "lmdb"},
          {"entries", entries()},
          {"convention", to_string(set_.convention().databases()[0].convention)},
          {"why", set_.convention().databases()[0].why},
          {"order_by", to_string(options_.order_by)},
          {"parts", part_names_},
          {"databases", databases},
          {"stored_bytes", set_.stored_bytes()},
          {"fingerprint", fingerprint()}};
}

}  // namespace

std::unique_ptr<SampleStore> open_lmdb_store(const std::string& dataset,
                                             const LoaderOptions& options, bool hold) {
  return std::make_unique<LmdbStore>(dataset, options, hold);
}

}  // namespace forebay
