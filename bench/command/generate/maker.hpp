// What `forebay-bench generate` writes: samples of the two applications of paper 003, whose targets
// can be learned from their inputs. A sample depends on the seed and its number alone.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "core/mix.hpp"
#include "core/non_copyable.hpp"
#include "forebay/dataset.hpp"

namespace forebay::generate {

struct Options {
  std::string application;  ///< cosmoflow or neuron
  std::string destination;
  std::uint64_t samples = 1000;
  std::uint64_t side = 32;      ///< of cosmoflow's cubes
  std::uint64_t channels = 12;  ///< of cosmoflow's cubes
  std::uint64_t length = 1600;  ///< of neuron's series
  std::uint64_t files = 1;
  std::uint64_t chunk_rows = 0;  ///< samples in a chunk; 0: contiguous, or 1 with gzip
  int gzip = 0;                  ///< level; 0: none
  std::uint64_t seed = 1;
  bool force = false;
  bool json = false;
};

/// Thread-safety: one thread.
class Maker : private NonCopyable {
 public:
  virtual ~Maker() = default;

  virtual const Field& input() const = 0;
  virtual const Field& target() const = 0;  ///< f32
  /// Fills input().bytes() bytes and target().elements() numbers in (-1, 1).
  virtual void make(std::uint64_t sample, std::span<std::byte> input, std::span<float> target) = 0;
};

std::unique_ptr<Maker> make_cosmoflow(const Options& options);
std::unique_ptr<Maker> make_neuron(const Options& options);

// Numbers drawn by counting: each from its key alone, the same on every platform.

/// Uniform in (-1, 1), with 53 random bits.
inline double uniform(std::uint64_t key) {
  constexpr double kStep = 0x1p-53;
  const auto bits = static_cast<double>(mix(key + kGolden) >> 11);
  return (2 * bits + 1) * kStep - 1;
}

/// Mean 0, variance 1, nearly normal, within +-3.5: the sum of four uniform numbers of 16 bits.
inline float bell(std::uint64_t key) {
  const std::uint64_t bits = mix(key + kGolden);
  float sum = 0;
  for (int piece = 0; piece < 4; ++piece) {
    sum += static_cast<float>((bits >> (16 * piece)) & 0xffff) / 65536.0F;
  }
  constexpr float kRootOf3 = 1.7320508F;
  return (sum - 2) * kRootOf3;
}

// An HDF5 file of samples that is written one sample after the other, through libhdf5.
//
//   one data set a field, first axis: the samples; little-endian numbers; contiguous, or chunks of
//   whole samples, compressed if wanted
//
// It is written as PATH.partial and gets its name when it is complete. One thread.

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
