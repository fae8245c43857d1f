// The engine that all LocalFeeds of a process share. The first feed makes the engine, and the last
// feed ends it. So 30 feeds take no more threads than one feed.
//
// Single-thread: call with the GIL held. The GIL guards the state, also in a child of fork(). The
// child forgets the parent's engine, because the engine's threads are in the parent.
#ifndef SYSTOLE_CLIENT_PYTHON_EXTENSION_PROCESS_ENGINE_H_
#define SYSTOLE_CLIENT_PYTHON_EXTENSION_PROCESS_ENGINE_H_

#include <memory>
#include <optional>

#include "client/local/local_engine.h"
#include "nanobind/nanobind.h"

namespace systole::python {

// Returns the engine for a feed. `threads`: the number of threads that the feed's caller gave, if
// any. The engine's number of threads is the first of these that exists: the number of the engine
// in use; the number that systole.configure() was given; `threads`; `processors`. Raises
// FailedPrecondition if `threads` is given and differs from the engine's number.
std::shared_ptr<LocalEngine> EngineForFeed(std::optional<int> threads, int processors);

void DeclareProcessEngine(nanobind::module_& module);

}  // namespace systole::python

#endif  // SYSTOLE_CLIENT_PYTHON_EXTENSION_PROCESS_ENGINE_H_
