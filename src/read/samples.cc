#include "forebay/samples.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <mutex>
#include <numeric>

#include "format/codec/codecs.hpp"
#include "format/sample_reader.hpp"
#include "read/data_access.hpp"
#include "read/strategy_table.hpp"
#include "storage/page_cache.hpp"
#include "storage/storages.hpp"

namespace forebay {
namespace {

// Read along rather than asked for apart.
constexpr std::uint64_t kGapBytes = 4096;
// Bytes that are in memory at a time while many samples are read.
constexpr std::uint64_t kReadAtOnce = std::uint64_t{32} << 20;
constexpr std::uint64_t kLeastBytes = 4096;  // of a record

/// The positions of `ids`, in the order of ids: what lies together is read together.
std::vector<std::size_t> in_order(std::span<const std::uint64_t> ids) {
  std::vector<std::size_t> positions(ids.size());
  std::iota(positions.begin(), positions.end(), std::size_t{0});
  if (!std::ranges::is_sorted(ids)) {
    std::ranges::sort(positions, {}, [&](std::size_t at) { return std::pair(ids[at], at); });
  }
  return positions;
}

/// Rather than of the data set.
bool of_a_sample(const Error& error) {
  return error.kind() == ErrorKind::corrupt || error.kind() == ErrorKind::io;
}

/// The bytes of extents, each read when it is asked for: slow, but what fails is then the fault of
/// the one sample that needs it. Keeps what it has read.
class BytesOnDemand final : public FileBytes {
 public:
  explicit BytesOnDemand(const DataSet& data) : data_(data) {}
  std::span<const std::byte> at(std::uint32_t file, std::uint64_t offset,
                                std::uint64_t length) const override {
    read_.push_back(std::make_unique<std::byte[]>(length));
    const std::span bytes(read_.back().get(), length);
    data_.files()[file]->read(offset, bytes);
    return bytes;
  }

 private:
  const DataSet& data_;
  mutable std::vector<std::unique_ptr<std::byte[]>> read_;
};

}  // namespace

/// What stands behind Samples.
class SampleStore {
 public:
  SampleStore(std::unique_ptr<DataSet> data, CodecOptions codec, std::chrono::milliseconds timeout)
      : data_(std::move(data)), codec_options_(std::move(codec)), timeout_(timeout) {
    expect_reads(*data_->whole(), Reads::forward);  // they may be asked for one after the other
    for (const auto& file : data_->files()) maps_.push_back(file->map());
    const bool whole = std::ranges::none_of(maps_, [](const auto& map) { return map.empty(); });
    if (!whole || data_->facts().values == DataSetFacts::Values::in_scratch) maps_.clear();
  }

  const DataSet& data() const { return *data_; }
  const DataSetFacts& facts() const { return data_->facts(); }

  /// Comes before the first read of samples, of which `id` is one: it may make the index, of all
  /// that a data set lists, and is given up where storage does not answer. (A thread for each of
  /// those that follow would take ten times as long as they do.)
  static void begin(const std::shared_ptr<const SampleStore>& store, std::uint64_t id);
  /// `ids` exist.
  void read(std::span<const std::uint64_t> ids, const Samples::Sink& sink) const {
    const std::vector<std::size_t> order = in_order(ids);
    // Records bring the whole leaf that they lie on.
    const std::uint64_t least = facts().keys_in_bytes ? kLeastBytes : 1;
    const std::uint64_t bytes = std::max(least, facts().sample_bytes);
    const std::size_t step = std::max<std::uint64_t>(1, kReadAtOnce / bytes);
    for (std::size_t at = 0; at < order.size(); at += step) {
      read_some(ids, std::span(order).subspan(at, std::min(step, order.size() - at)), sink);
    }
  }

  /// Made at the first call.
  const Codec& codec() const {
    const std::scoped_lock lock(codec_mutex_);
    if (!codec_) codec_ = tell_codec();
    return *codec_;
  }

  /// `error` with its place: which of `ids` it is about tells a look at them one by one.
  Error placed(const Error& error, std::span<const std::uint64_t> ids) const;

 private:
  void read_some(std::span<const std::uint64_t> ids, std::span<const std::size_t> positions,
                 const Samples::Sink& sink) const;
  SampleReader reader() const;
  void fetch(const Plan& plan, std::span<const PlacedExtent> reads,
             std::span<std::byte> memory) const;
  std::shared_ptr<const Codec> tell_codec() const;

  std::unique_ptr<DataSet> data_;
  CodecOptions codec_options_;
  std::chrono::milliseconds timeout_;
  mutable std::atomic<bool> begun_ = false;
  /// Of all files, where samples are used where they are mapped.
  std::vector<std::span<const std::byte>> maps_;
  mutable std::mutex codec_mutex_;
  mutable std::shared_ptr<const Codec> codec_;
};

void SampleStore::begin(const std::shared_ptr<const SampleStore>& store, std::uint64_t id) {
  if (store->begun_ || store->facts().entries == 0) return;
  ask_storage(store->facts().path, store->timeout_, "read the first sample", [store, id] {
    try {
      store->read(std::array{id}, [](const SampleView&) {});
    } catch (const std::exception&) {
      // The read that comes next says it with its place.
    }
  });
  store->begun_ = true;
}

/// Each sample once, however often it is asked for.
void SampleStore::read_some(std::span<const std::uint64_t> ids,
                            std::span<const std::size_t> positions,
                            const Samples::Sink& sink) const {
  std::vector<std::uint64_t> wanted;
  wanted.reserve(positions.size());
  for (const std::size_t position : positions) {
    if (wanted.empty() || wanted.back() != ids[position]) wanted.push_back(ids[position]);
  }
  SampleReader found = reader();
  found.read(wanted);
  std::size_t next = 0;
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    const auto value = found.value(i);
    for (; next < positions.size() && ids[positions[next]] == wanted[i]; ++next) {
      sink({.position = positions[next], .id = wanted[i], .key = found.key(i), .value = value});
    }
  }
}

SampleReader SampleStore::reader() const {
  if (!maps_.empty()) return SampleReader::in_place(*data_, maps_);
  const auto by_file = [this](const Plan& plan, std::span<const PlacedExtent> reads,
                              std::span<std::byte> memory) { fetch(plan, reads, memory); };
  return SampleReader::by(*data_, by_file, kGapBytes);
}

/// A read is of many samples: where it fails, they are asked for one by one, and the one that
/// cannot be read says what it is called.
void SampleStore::fetch(const Plan& plan, std::span<const PlacedExtent> reads,
                        std::span<std::byte> memory) const {
  try {
    for (const PlacedExtent& read : reads) {
      data_->files()[read.extent.file]->read(read.extent.offset,
                                             memory.subspan(read.place, read.extent.length));
    }
  } catch (const Error&) {
    if (plan.units() == 0) {
      plan.unpack(facts().part_count(), BytesOnDemand(*data_), {}, [](const FoundSample&) {});
    }
    throw;
  }
}

Error SampleStore::placed(const Error& error, std::span<const std::uint64_t> ids) const {
  const std::string& path = facts().path;
  if (error.where().sample || !of_a_sample(error)) return error.within({.file = path});
  if (ids.size() == 1) return error.within({.file = path, .sample = ids.front()});
  for (const std::uint64_t id : ids) {
    try {
      read(std::span(&id, 1), [](const SampleView&) {});
    } catch (const Error& of_one) {
      if (of_a_sample(of_one)) return of_one.within({.file = path, .sample = id});
    }
  }
  return error.within({.file = path});
}

std::shared_ptr<const Codec> SampleStore::tell_codec() const {
  const auto read_one = [this](std::uint64_t id, const RecordSink& sink) {
    read(std::array{id}, [&](const SampleView& sample) {
      sink({.sample = id, .key = sample.key, .value = sample.value});
    });
  };
  return find_telling_sample(codec_options_, facts().entries, read_one).make(facts().path);
}

Samples::Samples(std::shared_ptr<const SampleStore> store) : store_(std::move(store)) {}
Samples::Samples(Samples&&) noexcept = default;
Samples& Samples::operator=(Samples&&) noexcept = default;
Samples::~Samples() = default;

Samples Samples::open(const std::string& dataset, const LoaderOptions& options, bool hold) {
  FormatOptions how = format_options(options, options.engine);
  how.keeps = strategy_row(options.strategy).keeps;
  how.hold = hold;
  auto data = ask_storage(dataset, options.timeout, "open this",
                          [dataset, how] { return open_data_set(dataset, how); });
  tell_notes(data->facts());
  CodecOptions codec = codec_of_arrays(data->facts(), {options.codec, options.schema});
  return Samples(
      std::make_shared<const SampleStore>(std::move(data), std::move(codec), options.timeout));
}

const std::string& Samples::path() const { return store_->facts().path; }
std::uint64_t Samples::entries() const { return store_->facts().entries; }
std::span<const std::string> Samples::parts() const { return store_->facts().parts; }
std::span<const std::string> Samples::classes() const { return store_->facts().labels; }
const Codec& Samples::codec() const {
  SampleStore::begin(store_, 0);
  return store_->codec();
}

std::string Samples::fingerprint() const { return store_->facts().fingerprint; }
std::string Samples::info() const { return store_->data().info(); }
void Samples::keys(const KeySink& sink) const { store_->data().keys(sink); }

void Samples::read(std::span<const std::uint64_t> ids, const Sink& sink) const {
  for (const std::uint64_t id : ids) {
    if (id < entries()) continue;
    throw Error(ErrorKind::usage,
                fmt::format("sample {} is not among the {} samples", id, entries()), {},
                {.file = path()});
  }
  if (!ids.empty()) SampleStore::begin(store_, ids.front());
  try {
    store_->read(ids, sink);
  } catch (const Error& error) {
    throw store_->placed(error, ids);
  }
}

std::string Samples::key(std::uint64_t id) const {
  std::string key;
  read(std::span(&id, 1), [&](const SampleView& sample) {
    key.assign(reinterpret_cast<const char*>(sample.key.data()), sample.key.size());
  });
  return key;
}

}  // namespace forebay
