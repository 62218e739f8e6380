// Stored values on their way to Python: for each part of a sample, all values of a batch one behind
// the other, and where each begins (forebay.Ragged).
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "module.hpp"

namespace forebay::python {

/// Which parts of the values are wanted; of values without parts, number 0 is the whole.
struct WantedParts {
  std::size_t parts = 0;  ///< of each value; 0: it is one
  std::vector<std::size_t> wanted;
};

/// One part of all samples of a batch.
struct Column {
  std::vector<std::uint8_t> bytes;
  std::vector<std::int64_t> offsets{0};

  void add(std::span<const std::byte> value);
};

class Columns {
 public:
  /// `which` must outlive it. `bytes`: what the values have together, at most.
  Columns(const WantedParts& which, std::size_t samples, std::size_t bytes);

  /// Copies the wanted parts of `value`. Throws corrupt.
  void add(std::span<const std::byte> value);
  /// [(bytes, offsets), ...], moved out.
  nb::list to_python();

 private:
  const WantedParts* which_;
  std::vector<std::span<const std::byte>> split_;
  std::vector<Column> columns_;
};

}  // namespace forebay::python
