// forebay::Error becomes the Python class for its kind (forebay/_errors.py), with the place as
// attributes. This is the only place where errors cross into Python.
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>

#include "ending.hpp"
#include "forebay/error.hpp"
#include "module.hpp"

namespace forebay::python {
namespace {

nb::object text_or_none(const std::string& text) {
  return text.empty() ? nb::none() : nb::object(nb::cast(text));
}

void raise(const Error& error) {
  note_raised(error);
  const Where& where = error.where();
  const nb::object make = nb::module_::import_("forebay._errors").attr("make");
  const nb::object exception =
      make(std::string(to_string(error.kind())), error.what(), error.happened(), error.remedy(),
           text_or_none(where.file), where.offset, where.sample, text_or_none(where.key),
           where.rank < 0 ? nb::none() : nb::object(nb::cast(where.rank)));
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
