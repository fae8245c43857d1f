// The engine that all LocalFeeds of a process share. It is made with the first of them and goes
// with the last one. So 30 feeds take the threads of one.
//
// Single-thread: call with the GIL held, which guards what it remembers, in a child of fork() too.
// There the parent's engine is forgotten, because its threads are in the parent.
#ifndef SYSTOLE_CLIENT_PYTHON_EXTENSION_PROCESS_ENGINE_H_
#define SYSTOLE_CLIENT_PYTHON_EXTENSION_PROCESS_ENGINE_H_

#include <memory>
#include <optional>

#include "client/local/local_engine.h"
#include "nanobind/nanobind.h"

namespace systole::python {

// The engine for a feed that wants so many threads; nullopt: as many as there are. A new engine has
// `processors` threads, if nobody says otherwise. Raises FailedPrecondition if the process has, or
// is to have, another number.
std::shared_ptr<LocalEngine> EngineForFeed(std::optional<int> threads, int processors);

void DeclareProcessEngine(nanobind::module_& module);

}  // namespace systole::python

#endif  // SYSTOLE_CLIENT_PYTHON_EXTENSION_PROCESS_ENGINE_H_
