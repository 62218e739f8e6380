// Memory of the library as NumPy arrays that keep it alive.
#pragma once

#include <nanobind/ndarray.h>
#include <nanobind/stl/vector.h>

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "forebay/dataset.hpp"
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

nb::list list_of_bytes(const std::vector<std::string>& texts);

/// The shape of `samples` samples of `field`.
std::vector<std::size_t> batch_shape(const Field& field, std::size_t samples);

}  // namespace forebay::python
