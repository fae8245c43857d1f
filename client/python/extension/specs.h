// Feed specs for Python. The package's Python code passes specs as serialized messages.
//
// Single-thread: call with the GIL held.
#ifndef SYSTOLE_CLIENT_PYTHON_EXTENSION_SPECS_H_
#define SYSTOLE_CLIENT_PYTHON_EXTENSION_SPECS_H_

#include "nanobind/nanobind.h"
#include "systole/v1/feed.pb.h"

namespace systole::python {

// Parses a spec. Raises InvalidSpec if the bytes are not a FeedSpec.
v1::FeedSpec ParseSpec(const nanobind::bytes& serialized);

void DeclareSpecs(nanobind::module_& module);

}  // namespace systole::python

#endif  // SYSTOLE_CLIENT_PYTHON_EXTENSION_SPECS_H_
