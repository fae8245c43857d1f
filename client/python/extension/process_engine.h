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
// any. If an engine is in use, its number of threads counts. Otherwise the number that
// systole.configure() was given counts, if there is one. Raises FailedPrecondition if `threads`
// differs from the number that counts. If none counts, a new engine has `threads` threads or, if
// the caller gave no number either, `processors` threads.
std::shared_ptr<LocalEngine> EngineForFeed(std::optional<int> threads, int processors);

void DeclareProcessEngine(nanobind::module_& module);

}  // namespace systole::python

#endif  // SYSTOLE_CLIENT_PYTHON_EXTENSION_PROCESS_ENGINE_H_
