#include "client/python/extension/without_gil.h"

namespace systole::python {

bool SignalRaised() {
  const nanobind::gil_scoped_acquire acquire;
  return PyErr_CheckSignals() != 0;
}

}  // namespace systole::python
