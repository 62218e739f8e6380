// Between an array of any layout and plain memory.
//
//   array     [ any strides, also negative ones; perhaps bytes the other way round ]
//   plain     [ one element behind the other, in the order of C ]
//
// The dimension whose elements lie closest in the array and the one whose elements lie closest in
// plain memory are walked together, in tiles: what a transposition touches stays in the cache.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "forebay/tensor.hpp"

namespace forebay::python {

/// Where the elements of an array lie, counted from the one at [0, ..., 0].
struct Layout {
  TensorType type = TensorType::float32;
  bool swapped = false;  ///< the bytes of each element, as on machines of the other kind
  std::vector<std::uint64_t> shape;
  std::vector<std::int64_t> strides;  ///< in bytes; as many as extents

  std::uint64_t elements() const;
  /// One element behind the other, as the engine wants them.
  bool plain() const;
  /// Whether each element has bytes of its own. False also for layouts whose dimensions lie between
  /// each other in ways that nobody uses.
  bool distinct() const;
};

// Any thread.

/// array -> plain
void gather(const std::byte* first, const Layout& layout, std::span<std::byte> into);
/// plain -> array, whose elements are distinct
void scatter(std::span<const std::byte> from, std::byte* first, const Layout& layout);

}  // namespace forebay::python
