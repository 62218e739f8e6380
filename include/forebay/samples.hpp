// A data set to look samples up in, one process for itself: any that Loader opens, and no MPI.
//
//   const auto samples = forebay::Samples::open("train.lmdb");
//   samples.read(std::vector<std::uint64_t>{5, 1, 5, 0}, [](const forebay::SampleView& sample) {
//     use(sample.position, sample.key, sample.value);
//   });
//
// Sample ids, values and parts are those of a Loader with the same options; what is read of a file
// are the bytes that the samples need, by plain reads in the calling thread (or in place, engine
// mmap). No lock file is touched and no place in LMDB's table of readers is taken unless asked for,
// so any number of processes may do this at once, also where nothing can be written. Where somebody
// writes to the database meanwhile, a read either gives what was there at open, or throws changed.
//
// The index of the records is made by the first read, from a sidecar (docs/provenance.md) or else
// by a look at all leaf pages, and then kept; the latter also in the user's cache, as by Loader.
// Like opening, it is given up when storage does not answer for option timeout: a thread reads.
// Those that follow wait for it in the calling thread.
//
// Thread-safety: const methods may be called from many threads at once. A child of fork() may use
// what its parent has opened, provided that no thread was inside of a method meanwhile: there
// are then no threads, locks on files or shared positions.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "forebay/dataset.hpp"
#include "forebay/error.hpp"
#include "forebay/options.hpp"
#include "forebay/packed_parts.hpp"

namespace forebay {

/// A sample, valid inside the call that gets it.
struct SampleView {
  std::size_t position = 0;  ///< among the ids that were asked for
  std::uint64_t id = 0;
  std::span<const std::byte> key;    ///< as Sample::key
  std::span<const std::byte> value;  ///< as Sample::value: packed where there are parts()
};

class SampleStore;

/// Movable; all is local.
class Samples {
 public:
  using Sink = std::function<void(const SampleView&)>;
  using KeySink = std::function<void(std::uint64_t id, std::span<const std::byte> key)>;

  /// Opens what Loader::open does. Of `options` those count that say what the files are (format,
  /// convention, order_by, header_bytes ...), codec, schema, and engine: automatic is pread.
  /// `hold`: take a place in the table of readers of each LMDB database where that can be, so that
  /// no writer can end the snapshot. Throws not_found, unsupported, corrupt, io, usage.
  static Samples open(const std::string& dataset, const LoaderOptions& options = {},
                      bool hold = false);
  Samples(Samples&&) noexcept;
  Samples& operator=(Samples&&) noexcept;
  ~Samples();

  const std::string& path() const;
  std::uint64_t entries() const;
  /// As Loader::parts().
  std::span<const std::string> parts() const;
  /// Names of what labels number, by their numbers: folders of images (read where they lie, packed,
  /// or in a zip archive) have them. Empty: not known.
  std::span<const std::string> classes() const;
  /// How values are decoded; told by the first sample that decodes, for which the first call looks.
  /// Throws as make_codec, with the place.
  const Codec& codec() const;
  const Schema& schema() const { return codec().schema(); }
  /// Identity of the data set and of the convention: what a Loader's begins with.
  std::string fingerprint() const;
  /// One JSON object: format, entries, parts, the databases or files with their sizes, the
  /// convention of each and what it was told by, and records that are no samples.
  std::string info() const;

  /// Hands the samples `ids` to `sink`, each as often as it is named, in the order in which they
  /// lie in the files. `sink` may call other methods. Throws usage for an id that does not exist,
  /// io, corrupt, changed, and what `sink` throws. Errors name the file; io and corrupt the sample
  /// too, and its key where that can be read.
  void read(std::span<const std::uint64_t> ids, const Sink& sink) const;
  /// The key of one sample.
  std::string key(std::uint64_t id) const;
  /// Hands the keys of all samples to `sink`, in the order of ids, reading no values; none where
  /// samples have no keys.
  void keys(const KeySink& sink) const;

 private:
  explicit Samples(std::shared_ptr<const SampleStore> store);
  std::shared_ptr<const SampleStore> store_;  ///< also of a first read that storage did not answer
};

}  // namespace forebay
