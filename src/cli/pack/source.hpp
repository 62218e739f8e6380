// Where packed records come from: one class a kind of source, all behind one interface.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "cli/pack/pack_options.hpp"

namespace forebay::pack {

/// A record without its number.
struct SourceRecord {
  std::string name;   ///< goes into the key behind the number; empty where the number says it all
  std::string value;  ///< as stored
};

/// Records 0..count()-1, the same ones each time. Cheapest when read in order.
class Source {
 public:
  virtual ~Source() = default;
  Source() = default;
  Source(const Source&) = delete;
  Source& operator=(const Source&) = delete;

  virtual std::uint64_t count() const = 0;
  /// One line that differs when the records may differ, as far as can be told without reading all
  /// of them: paths, sizes and times of files, seeds.
  virtual std::string fingerprint() const = 0;
  /// Throws corrupt, io, not_found naming the file.
  virtual SourceRecord read(std::uint64_t index) = 0;
};

/// Throws usage, not_found, corrupt, io.
std::unique_ptr<Source> open_source(const Options& options);

std::unique_ptr<Source> open_idx_source(const Options& options);
std::unique_ptr<Source> open_cifar10_source(const Options& options);
std::unique_ptr<Source> open_folder_source(const Options& options);
std::unique_ptr<Source> open_raw_source(const Options& options);
/// Generated images (SOURCE is "-"), or the records of a data set over and over.
std::unique_ptr<Source> open_synthetic_source(const Options& options);

}  // namespace forebay::pack
