// Where ranks come from: this process alone, MPI, or an MPI communicator of somebody else's
// (mpi4py).
#include <fmt/format.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>

#include "comm/mpi_backend.hpp"
#include "ending.hpp"
#include "forebay/communicator.hpp"
#include "forebay/error.hpp"
#include "forebay/mpi_session.hpp"
#include "module.hpp"

namespace forebay::python {
namespace {

/// `address` is that of a variable of type MPI_Comm, as mpi4py's MPI._addressof() gives it.
std::shared_ptr<Communicator> adopt(std::uintptr_t address) {
  const Unlocked unlocked;
  return adopt_mpi_communicator(reinterpret_cast<const void*>(address));
}

/// For a rank that finds out by itself that it cannot open what the others open: they, whose first
/// step is such a meeting too, throw the same. `error` is the text form of parse_error().
void fail_together(Communicator& comm, const std::string& error) {
  const Unlocked unlocked;
  collectively(comm, [&] { throw parse_error(error); });
}

}  // namespace

void add_communicators(nb::module_& module) {
  nb::class_<Communicator>(module, "Communicator")
      .def_prop_ro("rank", &Communicator::rank)
      .def_prop_ro("size", &Communicator::size)
      .def("barrier", &Communicator::barrier, nb::call_guard<Unlocked>());
  nb::class_<ProcessMpi>(module, "ProcessMpi")
      .def_prop_ro("is_ours", &ProcessMpi::is_ours)
      .def_prop_ro("world", [](const ProcessMpi& mpi) { return mpi.session->world(); });
  module.def("begin_mpi", &begin_mpi, nb::rv_policy::reference, nb::call_guard<Unlocked>());
  module.def("begun_mpi", &begun_mpi, nb::rv_policy::reference,
             nb::sig("def begun_mpi() -> ProcessMpi | None"));
  module.def("end_at_exit", &end_at_exit);
  module.def("end_mpi", &end_mpi);
  module.def("self_communicator", &self_communicator);
  module.def("adopt_communicator", &adopt, nb::arg("address"));
  module.def("fail_together", &fail_together, nb::arg("comm"), nb::arg("error"));
  module.def("wait_for_ends", &wait_for_ends, nb::call_guard<Unlocked>());
  module.def("launched_by_mpi", &launched_by_mpi);
  module.def("mpi_thread_level", &mpi_thread_level);
  // In MPI's own words, to compare with what mpi4py says.
  module.def("mpi_library", [] { return mpi_backend().library(); });
}

// forebay::Error becomes the Python class for its kind (forebay/_errors.py), with the place as
// attributes. This is the only place where errors cross into Python.

namespace {

nb::object text_or_none(const std::string& text) {
  return text.empty() ? nb::none() : nb::object(text_of(text));
}

void raise(const Error& error) {
  note_raised(error);
  const Where& where = error.where();
  const nb::object make = nb::module_::import_("forebay._errors").attr("make");
  const nb::object exception =
      make(std::string(to_string(error.kind())), text_of(error.what()), text_of(error.happened()),
           text_of(error.remedy()), text_or_none(where.file), where.offset, where.sample,
           text_or_none(where.key), where.rank < 0 ? nb::none() : nb::object(nb::cast(where.rank)));
  PyErr_SetObject(exception.type().ptr(), exception.ptr());
}

}  // namespace

void add_errors(nb::module_& /*module*/) {
  nb::register_exception_translator([](const std::exception_ptr& thrown, void*) {
    try {
      std::rethrow_exception(thrown);
    } catch (const Error& error) {
      raise(error);
    }
  });
}

}  // namespace forebay::python
