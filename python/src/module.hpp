// The parts of the extension module forebay._core. Each adds its classes and functions.
//
// Python's lock (the GIL) is released around everything that waits or copies. What the library
// throws becomes forebay.Error (errors.cc). Nothing here keeps state of its own: what belongs to
// the process is kept by the Python side (forebay/_ranks.py).
#pragma once

#include <nanobind/nanobind.h>

namespace forebay::python {

namespace nb = nanobind;

void add_errors(nb::module_& module);
void add_communicators(nb::module_& module);
void add_loader(nb::module_& module);
void add_samples(nb::module_& module);
void add_order(nb::module_& module);
void add_sync(nb::module_& module);

}  // namespace forebay::python
