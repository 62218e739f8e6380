#include "forebay/samples.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <numeric>

#include "format/codec/codecs.hpp"
#include "format/registry.hpp"
#include "read/data_set_access.hpp"
#include "read/samples/sample_store.hpp"

namespace forebay {
namespace {

std::string_view text_of(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

void require_ids(std::span<const std::uint64_t> ids, const SampleStore& store) {
  const auto wrong =
      std::ranges::find_if(ids, [&](std::uint64_t id) { return id >= store.entries(); });
  if (wrong == ids.end()) return;
  throw Error(ErrorKind::usage,
              fmt::format("sample {} is not among the {} samples", *wrong, store.entries()), {},
              {.file = store.path()});
}

/// Rather than of the data set.
bool of_a_sample(const Error& error) {
  return error.kind() == ErrorKind::corrupt || error.kind() == ErrorKind::io;
}

/// `error` with its place: which of `ids` it is about tells a look at them one by one.
Error placed(const Error& error, std::span<const std::uint64_t> ids, const SampleStore& store) {
  if (error.where().sample || !of_a_sample(error)) return error.within({.file = store.path()});
  if (ids.size() == 1) return error.within({.file = store.path(), .sample = ids.front()});
  for (const std::uint64_t id : ids) {
    try {
      store.read(std::span(&id, 1), [](const SampleView&) {});
    } catch (const Error& of_one) {
      if (of_a_sample(of_one)) return of_one.within({.file = store.path(), .sample = id});
    }
  }
  return error.within({.file = store.path()});
}

}  // namespace

std::vector<std::size_t> in_order(std::span<const std::uint64_t> ids) {
  std::vector<std::size_t> positions(ids.size());
  std::iota(positions.begin(), positions.end(), std::size_t{0});
  if (!std::ranges::is_sorted(ids)) {
    std::ranges::sort(positions, {}, [&](std::size_t at) { return std::pair(ids[at], at); });
  }
  return positions;
}

const Codec& SampleStore::codec() const {
  const std::scoped_lock lock(codec_mutex_);
  if (!codec_) codec_ = tell_codec();
  return *codec_;
}

std::shared_ptr<const Codec> SampleStore::tell_codec() const {
  const CodecOptions options = codec_options();
  if (options.codec == "bytes" || options.codec == "raw") return make_codec(options, {});
  std::shared_ptr<const Codec> told;
  // An empty value says nothing of the others.
  const std::uint64_t most = options.codec == "auto" ? kMostAsked : 1;
  for (std::uint64_t id = 0; id < std::min(entries(), most) && !told; ++id) {
    read(std::array{id}, [&](const SampleView& sample) {
      if (sample.value.empty() && options.codec == "auto") return;
      try {
        told = make_codec(options, sample.value);
      } catch (const Error& error) {
        throw error.within(
            {.file = path(), .sample = id, .key = printable_key(text_of(sample.key))});
      }
    });
  }
  return told ? told : make_codec({.codec = "bytes", .schema = {}}, {});
}

Samples::Samples(std::unique_ptr<SampleStore> store) : store_(std::move(store)) {}
Samples::Samples(Samples&&) noexcept = default;
Samples& Samples::operator=(Samples&&) noexcept = default;
Samples::~Samples() = default;

Samples Samples::open(const std::string& dataset, const LoaderOptions& options, bool hold) {
  const std::string format = options.format == "auto"
                                 ? recognise_files(dataset, format_options(options, options.engine))
                                 : options.format;
  return Samples(format.empty() ? open_lmdb_store(dataset, options, hold)
                                : open_data_set_store(dataset, options, format));
}

const std::string& Samples::path() const { return store_->path(); }
std::uint64_t Samples::entries() const { return store_->entries(); }
std::span<const std::string> Samples::parts() const { return store_->parts(); }
const Codec& Samples::codec() const { return store_->codec(); }
std::string Samples::fingerprint() const { return store_->fingerprint(); }
std::string Samples::info() const { return store_->info().dump(); }
void Samples::keys(const KeySink& sink) const { store_->keys(sink); }

void Samples::read(std::span<const std::uint64_t> ids, const Sink& sink) const {
  require_ids(ids, *store_);
  try {
    store_->read(ids, sink);
  } catch (const Error& error) {
    throw placed(error, ids, *store_);
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
