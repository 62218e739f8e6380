// Memory of other people's arrays: where a Python object says that its numbers lie.
//
//   buffer protocol   NumPy and its subclasses, memoryview, array.array, bytearray, mmap, ctypes
//   DLPack            everything else: tensors of torch (without their history: forebay/_memory.py)
//
// Nothing is converted: an array that is a temporary copy of the caller's would be gone before the
// engine's thread is done with it, and take the result along. What cannot be used is refused by a
// UsageError that names the argument. Layouts that the engine does not work on are copied there and
// back (strided_copy.cc).
#pragma once

#include <nanobind/ndarray.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "forebay/tensor.hpp"
#include "module.hpp"

namespace forebay::python {

// Arrays, and plain memory as the engine wants it:
//
//   array     [ any strides, also negative ones; perhaps bytes the other way round ]
//   plain     [ one element behind the other, in the order of C ]

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

// Between the two, in any thread.

/// array -> plain
void gather(const std::byte* first, const Layout& layout, std::span<std::byte> into);
/// plain -> array, whose elements are distinct
void scatter(std::span<const std::byte> from, std::byte* first, const Layout& layout);

/// Which argument of which call, for messages.
struct Argument {
  std::string call;  ///< "allreduce of 'conv1'"
  std::string name;
};

enum class Access : std::uint8_t { read, write };

/// Bytes that are used, [begin, end).
struct Extent {
  std::uintptr_t begin = 0;
  std::uintptr_t end = 0;

  bool meets(const Extent& other) const {
    return begin < other.end && other.begin < end && begin < end && other.begin < other.end;
  }
  bool operator==(const Extent&) const = default;
};

/// The memory of one array, which cannot go while this or a copy lives. Made, copied and destroyed
/// under Python's lock.
class Memory {
 public:
  /// Throws usage for what is no array, on another device, of a type that is not summed, or to be
  /// written to and read-only or with elements that share bytes.
  static Memory of(nb::handle object, Access access, const Argument& argument);

  const Layout& layout() const { return layout_; }
  std::byte* first() const { return first_; }
  Extent extent() const;
  /// Whether elements of both may have a byte in common: exact where both have the same strides, as
  /// columns of one matrix and parts of complex numbers do; else their extents meet.
  bool meets(const Memory& other) const;
  /// Of a plain layout.
  std::span<std::byte> bytes() const;

 private:
  bool import_buffer(nb::handle object, Access access, const Argument& argument);
  bool import_dlpack(nb::handle object, const Argument& argument);
  void take(nb::handle object, const nb::ndarray<nb::ro>& array, bool writable,
            const Argument& argument);

  Layout layout_;
  std::byte* first_ = nullptr;
  bool writable_ = false;  ///< looked at only where it is wanted
  std::shared_ptr<const void> owner_;
};

}  // namespace forebay::python
