// What stands behind Samples, one class a kind of data set. All is local; const methods may be
// called from many threads at once.
#pragma once

#include <memory>
#include <mutex>
#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <vector>

#include "forebay/samples.hpp"

namespace forebay {

class SampleStore {
 public:
  using Json = nlohmann::ordered_json;

  virtual ~SampleStore() = default;
  SampleStore() = default;
  SampleStore(const SampleStore&) = delete;
  SampleStore& operator=(const SampleStore&) = delete;

  virtual const std::string& path() const = 0;
  virtual std::uint64_t entries() const = 0;
  virtual std::span<const std::string> parts() const { return {}; }
  virtual CodecOptions codec_options() const = 0;
  virtual std::string fingerprint() const = 0;
  virtual Json info() const = 0;
  /// `ids` exist.
  virtual void read(std::span<const std::uint64_t> ids, const Samples::Sink& sink) const = 0;
  virtual void keys(const Samples::KeySink&) const {}

  /// Made at the first call.
  const Codec& codec() const;

 private:
  std::shared_ptr<const Codec> tell_codec() const;

  mutable std::mutex codec_mutex_;
  mutable std::shared_ptr<const Codec> codec_;
};

/// The positions of `ids`, in the order of ids: what lies together is read together.
std::vector<std::size_t> in_order(std::span<const std::uint64_t> ids);

/// Bytes that are in memory at a time while many samples are read.
inline constexpr std::uint64_t kReadAtOnce = std::uint64_t{32} << 20;

std::unique_ptr<SampleStore> open_lmdb_store(const std::string& dataset,
                                             const LoaderOptions& options, bool hold);
std::unique_ptr<SampleStore> open_data_set_store(const std::string& dataset,
                                                 const LoaderOptions& options,
                                                 const std::string& format);

}  // namespace forebay
