#include "client/python/extension/raise.h"

#include <string>

#include "nanobind/stl/string.h"

namespace nb = nanobind;

namespace systole::python {
namespace {

// The classes, by the name of their code; set once, when the package is imported.
PyObject* classes = nullptr;

}  // namespace

void RaiseIfError(const absl::Status& status) {
  if (status.ok()) return;
  if (PyErr_Occurred() != nullptr) throw nb::python_error();
  const std::string name = absl::StatusCodeToString(status.code());
  PyObject* error = classes == nullptr ? nullptr : PyDict_GetItemString(classes, name.c_str());
  if (error == nullptr && classes != nullptr) error = PyDict_GetItemString(classes, "");
  if (error == nullptr) error = PyExc_RuntimeError;
  const std::string message(status.message());
  PyErr_SetString(error, message.c_str());
  throw nb::python_error();
}

void DeclareErrors(nb::module_& module) {
  module.def(
      "set_errors",
      [](const nb::dict& errors) {
        Py_INCREF(errors.ptr());
        Py_XDECREF(classes);
        classes = errors.ptr();
      },
      nb::arg("errors"), "From the name of a status code to the class that is raised for it.");
}

}  // namespace systole::python
