// The extension module `systole._systole`: the C++ code that the package's Python code calls.
#include "client/python/extension/array_rows.h"
#include "client/python/extension/contact_sheets.h"
#include "client/python/extension/feed_handle.h"
#include "client/python/extension/feed_options.h"
#include "client/python/extension/memory.h"
#include "client/python/extension/process_engine.h"
#include "client/python/extension/raise.h"
#include "client/python/extension/record_files.h"
#include "client/python/extension/specs.h"
#include "core/plan/content_version.h"
#include "core/process/allocator.h"
#include "nanobind/nanobind.h"
#include "nanobind/stl/string.h"
#include "proto/framing/grpc_log.h"

namespace nb = nanobind;

namespace systole::python {
NB_MODULE(_systole, module) {
  // When nanobind looks for leaks at exit, some objects still exist. For example, JAX's caches hold
  // a jax.Array made of a batch, and the array holds the batch's memory. These objects do no harm:
  // the process ends, and systole/_base_feed.py has ended the feeds' threads before.
  nb::set_leak_warnings(false);
  module.doc() = "The C++ part of the package `systole`. Use the package, not this module.";
  // An exception reports a server that cannot be reached, so gRPC need not log it to stderr.
  SilenceGrpcLog();
  module.attr("version") = SYSTOLE_VERSION;
  module.def(
      "content_version", &ContentVersion,
      "The version of the bytes that feeds give. Two runs get equal bytes only if their versions\n"
      "are equal.");
  module.def(
      "keep_freed_memory", &KeepFreedMemory, nb::arg("arenas"),
      "Makes malloc keep up to 256 MiB of what is freed instead of giving it back to the\n"
      "kernel, and use at most `arenas` heaps. gRPC takes and frees memory for every piece\n"
      "that it reads; with malloc's defaults, page faults take half of a client's time. This\n"
      "concerns the whole process. Set the number of heaps before many threads run. glibc\n"
      "only.");
  DeclareErrors(module);
  DeclareSpecs(module);
  DeclareMemory(module);
  DeclareContactSheets(module);
  DeclareProcessEngine(module);
  DeclareFeedOptions(module);
  DeclareFeeds(module);
  DeclareRecordFiles(module);
  DeclareArrayRows(module);
}

}  // namespace systole::python
