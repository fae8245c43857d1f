#include "client/python/extension/process_engine.h"

#include <unistd.h>

#include <cstdint>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "client/python/extension/raise.h"
#include "nanobind/stl/optional.h"

namespace nb = nanobind;

namespace systole::python {
namespace {

struct ProcessEngine {
  // The values of systole.configure().
  std::optional<int> threads;
  std::optional<int64_t> memory_budget;
  std::weak_ptr<LocalEngine> engine;  // The engine of the open feeds.
  pid_t process = getpid();           // The process that made `engine`.
};

ProcessEngine& Get() {
  // Never destroyed: feeds may end after the interpreter.
  static ProcessEngine& known = *new ProcessEngine;
  if (known.process != getpid()) {
    known.engine.reset();
    known.process = getpid();
  }
  return known;
}

void Configure(std::optional<int> threads, std::optional<int64_t> memory_budget) {
  // This engine is dropped at once. Making it only checks the values.
  ValueOrRaise(LocalEngine::Create(
      {.threads = threads.value_or(1), .memory_budget_bytes = memory_budget.value_or(0)}));
  ProcessEngine& known = Get();
  if (const std::shared_ptr<LocalEngine> engine = known.engine.lock(); engine != nullptr) {
    const bool same_threads = !threads.has_value() || *threads == engine->threads();
    const int64_t budget = engine->memory_budget_bytes();
    if (!same_threads || (memory_budget.has_value() && *memory_budget != budget)) {
      RaiseIfError(absl::FailedPreconditionError(absl::StrCat(
          "LocalFeeds are open, which share ", engine->threads(),
          " threads and a memory_budget of ", budget,
          " bytes: call systole.configure() before the first one, or close them all")));
    }
  }
  known.threads = threads;
  known.memory_budget = memory_budget;
}

}  // namespace

std::shared_ptr<LocalEngine> EngineForFeed(std::optional<int> threads, int processors) {
  ProcessEngine& known = Get();
  std::shared_ptr<LocalEngine> engine = known.engine.lock();
  const std::optional<int> in_force =
      engine != nullptr ? std::make_optional(engine->threads()) : known.threads;
  if (threads.has_value() && in_force.has_value() && *threads != *in_force) {
    RaiseIfError(absl::FailedPreconditionError(absl::StrCat(
        "threads is ", *threads, ", and the LocalFeeds of this process share ", *in_force, ", as ",
        engine != nullptr && !known.threads.has_value() ? "the first one that is open"
                                                        : "systole.configure()",
        " said: leave threads out, or ", engine != nullptr ? "close all LocalFeeds and then " : "",
        "call systole.configure(threads=", *threads, ")")));
  }
  if (engine == nullptr) {
    engine = ValueOrRaise(
        LocalEngine::Create({.threads = in_force.value_or(threads.value_or(processors)),
                             .memory_budget_bytes = known.memory_budget.value_or(0)}));
    known.engine = engine;
  }
  return engine;
}

void DeclareProcessEngine(nb::module_& module) {
  module.def("configure", &Configure, nb::kw_only(), nb::arg("threads").none() = nb::none(),
             nb::arg("memory_budget").none() = nb::none(), "See systole.configure().");
}

}  // namespace systole::python
