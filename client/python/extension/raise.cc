#include "client/python/extension/raise.h"

#include <string>
#include <utility>

#include "absl/strings/str_replace.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "nanobind/stl/string.h"

namespace nb = nanobind;

namespace systole::python {
namespace {

// Options in messages: first as the command line spells them, then as Python does.
constexpr std::pair<absl::string_view, absl::string_view> kOptions[] = {
    {"--allow-mixed-content", "allow_mixed_content=True"},
    {"--no-shared-memory", "share_memory=False"},
    {" (--max-step-bytes)", ""},
    {" (--prefetch-bytes)", ""},
    {"--tls-server-name", "tls_server_name"},
    {"--tls-certificate", "tls_certificate"},
    {"--tls-key", "tls_key"},
    {"--tls-ca", "tls_ca"},
    {"--tls", "tls=True"},
    {"--token-file", "token_file"},
};

// A dict from the name of a status code to its exception class. Set once, when the package is
// imported.
PyObject* classes = nullptr;

}  // namespace

void RaiseIfError(const absl::Status& status) {
  if (status.ok()) return;
  if (PyErr_Occurred() != nullptr) throw nb::python_error();
  const std::string name = absl::StatusCodeToString(status.code());
  PyObject* error = classes == nullptr ? nullptr : PyDict_GetItemString(classes, name.c_str());
  if (error == nullptr && classes != nullptr) error = PyDict_GetItemString(classes, "");
  if (error == nullptr) error = PyExc_RuntimeError;
  const std::string message = absl::StrReplaceAll(status.message(), absl::MakeConstSpan(kOptions));
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
      nb::arg("errors"), "For the name of each status code, the class that is raised for it.");
}

}  // namespace systole::python
