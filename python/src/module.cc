#include "module.hpp"

NB_MODULE(_core, module) {
  module.doc() = "The C++ side of the package forebay. Not for direct use.";
  module.attr("version") = FOREBAY_VERSION;
  module.attr("mpi_flavour") = FOREBAY_MPI_FLAVOUR;
  // Of objects that live to the end of a process, as data sets of workers do.
  nanobind::set_leak_warnings(false);
  module.def("process_ends", [] { forebay::python::process_ends = true; });
  forebay::python::add_errors(module);
  forebay::python::add_communicators(module);
  forebay::python::add_loader(module);
  forebay::python::add_samples(module);
  forebay::python::add_order(module);
  forebay::python::add_sync(module);
}
