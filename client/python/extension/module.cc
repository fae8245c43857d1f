// The extension module `systole._systole`: what the package's Python stands on.
#include "client/python/extension/contact_sheets.h"
#include "client/python/extension/feed_handle.h"
#include "client/python/extension/memory.h"
#include "client/python/extension/raise.h"
#include "client/python/extension/specs.h"
#include "core/pipeline/feed_plan.h"
#include "core/program/allocator.h"
#include "nanobind/nanobind.h"
#include "nanobind/stl/string.h"
#include "proto/framing/grpc_log.h"

namespace nb = nanobind;

namespace systole::python {
NB_MODULE(_systole, module) {
  module.doc() = "What the package `systole` stands on. Use the package.";
  // A server that is away is told by exceptions, not by gRPC's lines on stderr.
  SilenceGrpcLog();
  module.attr("version") = SYSTOLE_VERSION;
  module.def("content_version", &ContentVersion,
             "The version that two runs must share for equal bytes.");
  module.def("keep_freed_memory", &KeepFreedMemory, nb::arg("arenas") = 1,
             "Makes malloc keep what is freed, and use at most `arenas` heaps, as the programs\n"
             "`systole` and `systole-server` do. Concerns the whole process, so Systole does not do\n"
             "it by itself. Call it before threads are started. glibc only.");
  DeclareErrors(module);
  DeclareSpecs(module);
  DeclareMemory(module);
  DeclareContactSheets(module);
  DeclareFeeds(module);
}

}  // namespace systole::python
