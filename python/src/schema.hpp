// Fields for Python.
#pragma once

#include <nanobind/stl/string.h>

#include <string>

#include "forebay/dataset.hpp"
#include "module.hpp"

namespace forebay::python {

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

}  // namespace forebay::python
