// Memory of the library as NumPy arrays that keep it alive.
#pragma once

#include <nanobind/ndarray.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "forebay/dataset.hpp"
#include "forebay/error.hpp"
#include "module.hpp"

namespace forebay::python {

/// An array over `data`, which `owner` keeps alive as long as the array, or anything made of it by
/// DLPack or the buffer protocol, lives.
nb::object array_over(std::span<const std::byte> data, ElementType type,
                      const std::vector<std::size_t>& shape, std::shared_ptr<const void> owner);

/// An array of its own memory, moved out of `values`.
template <typename Number>
nb::object array_of(std::vector<Number> values) {
  auto* const kept = new std::vector<Number>(std::move(values));
  const nb::capsule owner(
      kept, [](void* held) noexcept { delete static_cast<std::vector<Number>*>(held); });
  return nb::cast(nb::ndarray<nb::numpy, Number, nb::ndim<1>>(kept->data(), {kept->size()}, owner));
}

nb::list list_of_bytes(std::span<const std::string> texts);

/// The shape of `samples` samples of `field`.
std::vector<std::size_t> batch_shape(const Field& field, std::size_t samples);

// Stored values on their way to Python: for each part of a sample, all values of a batch one behind
// the other, and where each begins (forebay.Ragged).

/// Which parts of the values are wanted; of values without parts, number 0 is the whole.
struct WantedParts {
  std::span<const std::string> parts;  ///< of each value; none: it is one
  std::vector<std::size_t> wanted;
  std::vector<ElementType> types;  ///< of each part; of a value without parts, of all of it
};

/// What parts of these names are arrays of.
std::vector<ElementType> types_of(std::span<const std::string> parts, const Schema& schema);

/// One part of all samples of a batch.
struct Column {
  std::vector<std::byte> bytes;
  std::vector<std::int64_t> offsets{0};  ///< in numbers

  /// Throws corrupt.
  void add(std::span<const std::byte> value, ElementType type);
};

class Columns {
 public:
  /// `which` must outlive it. `bytes`: what the values have together, at most.
  Columns(const WantedParts& which, std::size_t samples, std::size_t bytes);

  /// Copies the wanted parts of `value`. Throws corrupt.
  void add(std::span<const std::byte> value);
  /// [(numbers, offsets), ...], moved out.
  nb::list to_python();

 private:
  const WantedParts* which_;
  std::vector<std::span<const std::byte>> split_;
  std::vector<Column> columns_;
};

// Fields for Python.

/// [(name, type, shape), ...]
inline nb::list fields_of(const Schema& schema) {
  nb::list fields;
  for (const Field& field : schema.fields) {
    nb::list shape;
    for (const std::uint64_t extent : field.shape) shape.append(extent);
    fields.append(nb::make_tuple(field.name, std::string(to_string(field.type)), nb::tuple(shape)));
  }
  return fields;
}

/// `error`, which is about that sample.
Error of_sample(const Error& error, std::uint64_t id, std::string_view key);

}  // namespace forebay::python
