// An HDF5 file of samples that is written one sample after the other, through libhdf5.
//
//   one data set a field, first axis: the samples; little-endian numbers; contiguous, or chunks of
//   whole samples, compressed if wanted
//
// It is written as PATH.partial and gets its name when it is complete. One thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "core/non_copyable.hpp"
#include "forebay/dataset.hpp"

namespace forebay::generate {

struct Hdf5Layout {
  std::uint64_t rows = 0;
  std::uint64_t chunk_rows = 0;  ///< 0: contiguous
  int gzip = 0;                  ///< level, needs chunks; 0: none
};

class SampleFile : private NonCopyable {
 public:
  /// Removes the file unless it was completed.
  virtual ~SampleFile() = default;

  /// Writes field `field` of sample `row`: Field::bytes() bytes. Throws io.
  virtual void write(std::uint64_t row, std::size_t field, std::span<const std::byte> value) = 0;
  /// Closes the file, flushes it to the device and gives it its name. Throws io.
  virtual void complete() = 0;
};

/// Makes the file with all its data sets. Throws io, and unsupported without HDF5.
std::unique_ptr<SampleFile> create_hdf5(const std::string& path, const Schema& schema,
                                        const Hdf5Layout& layout);

}  // namespace forebay::generate
