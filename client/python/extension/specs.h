// Feed specs for Python: the serialized message is what the package passes around.
//
// Single-thread: call with the GIL held.
#ifndef SYSTOLE_CLIENT_PYTHON_EXTENSION_SPECS_H_
#define SYSTOLE_CLIENT_PYTHON_EXTENSION_SPECS_H_

#include "nanobind/nanobind.h"
#include "systole/v1/feed.pb.h"

namespace systole::python {

// The message. Raises InvalidSpec if the bytes are none.
v1::FeedSpec ParseSpec(const nanobind::bytes& serialized);

void DeclareSpecs(nanobind::module_& module);

}  // namespace systole::python

#endif  // SYSTOLE_CLIENT_PYTHON_EXTENSION_SPECS_H_
