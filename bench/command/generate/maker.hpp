// What `forebay-bench generate` writes: samples of the two applications of paper 003, whose targets
// can be learned from their inputs. A sample depends on the seed and its number alone.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

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
class Maker {
 public:
  virtual ~Maker() = default;
  Maker() = default;
  Maker(const Maker&) = delete;
  Maker& operator=(const Maker&) = delete;

  virtual const Field& input() const = 0;
  virtual const Field& target() const = 0;  ///< f32
  /// Fills input().bytes() bytes and target().elements() numbers in (-1, 1).
  virtual void make(std::uint64_t sample, std::span<std::byte> input, std::span<float> target) = 0;
};

std::unique_ptr<Maker> make_cosmoflow(const Options& options);
std::unique_ptr<Maker> make_neuron(const Options& options);

}  // namespace forebay::generate
