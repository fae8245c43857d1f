// Raises the Python exception for a status (systole/_errors.py).
//
// Single-thread: call with the GIL held.
#ifndef SYSTOLE_CLIENT_PYTHON_EXTENSION_RAISE_H_
#define SYSTOLE_CLIENT_PYTHON_EXTENSION_RAISE_H_

#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "nanobind/nanobind.h"

namespace systole::python {

// Throws the exception for `status`, unless `status` is OK. If a Python exception is set already,
// such as KeyboardInterrupt, throws that exception instead.
void RaiseIfError(const absl::Status& status);

template <typename T>
T ValueOrRaise(absl::StatusOr<T> value) {
  RaiseIfError(value.status());
  return *std::move(value);
}

// Declares the function that takes the exception classes: a dict from the name of a status code,
// such as "NOT_FOUND", to the class to raise. The key "" is for all other codes.
void DeclareErrors(nanobind::module_& module);

}  // namespace systole::python

#endif  // SYSTOLE_CLIENT_PYTHON_EXTENSION_RAISE_H_
