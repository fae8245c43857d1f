#include "client/python/extension/process_engine.h"

#include <unistd.h>

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "client/python/extension/raise.h"
#include "nanobind/stl/optional.h"
#include "nanobind/stl/string.h"

namespace nb = nanobind;

namespace systole::python {
namespace {

struct ProcessEngine {
  // The values that systole.configure() was given. `options.threads` is not used.
  std::optional<int> threads;
  LocalEngineOptions options;
  std::weak_ptr<LocalEngine> engine;  // The engine of the open feeds.
  pid_t process = getpid();           // The process that made `engine`.
};

ProcessEngine& Get() {
  // Never destroyed, because feeds may end after the interpreter has ended.
  static ProcessEngine& known = *new ProcessEngine;
  if (known.process != getpid()) {
    known.engine.reset();
    known.options.block_cache.clear();  // Only one process, the parent, may use the folder.
    known.process = getpid();
  }
  return known;
}

void Configure(std::optional<int> threads, std::optional<int64_t> memory_budget,
               int64_t read_budget, const std::string& block_cache, int64_t block_cache_bytes) {
  const LocalEngineOptions options = {.threads = threads.value_or(1),
                                      .memory_budget_bytes = memory_budget.value_or(0),
                                      .read_budget_bytes = read_budget,
                                      .block_cache = block_cache,
                                      .block_cache_bytes = block_cache_bytes};
  // Makes an engine only to check the values, and drops the engine at once.
  ValueOrRaise(LocalEngine::Create(options));
  ProcessEngine& known = Get();
  if (const std::shared_ptr<LocalEngine> engine = known.engine.lock(); engine != nullptr) {
    const int64_t budget = engine->memory_budget_bytes();
    const LocalEngineOptions& in_use = engine->options();
    // An option that was left out is not compared with the engine's value.
    const bool same = (!threads.has_value() || *threads == engine->threads()) &&
                      (!memory_budget.has_value() || *memory_budget == budget) &&
                      (read_budget == 0 || read_budget == in_use.read_budget_bytes) &&
                      (block_cache.empty() || (block_cache == in_use.block_cache &&
                                               block_cache_bytes == in_use.block_cache_bytes));
    if (!same) {
      RaiseIfError(absl::FailedPreconditionError(absl::StrCat(
          "open LocalFeeds share ", engine->threads(), " threads, a memory_budget of ", budget,
          " bytes, a read_budget of ", in_use.read_budget_bytes, " and the block_cache '",
          in_use.block_cache,
          "': close all LocalFeeds, and call systole.configure() before the next is opened")));
    }
  }
  known.threads = threads;
  known.options = options;
}

}  // namespace

std::shared_ptr<LocalEngine> EngineForFeed(std::optional<int> threads, int processors) {
  ProcessEngine& known = Get();
  std::shared_ptr<LocalEngine> engine = known.engine.lock();
  const std::optional<int> in_force =
      engine != nullptr ? std::make_optional(engine->threads()) : known.threads;
  if (threads.has_value() && in_force.has_value() && *threads != *in_force) {
    RaiseIfError(absl::FailedPreconditionError(
        absl::StrCat("threads is ", *threads, ", but the LocalFeeds of this process share ",
                     *in_force, *in_force == 1 ? " thread" : " threads", ", a number that ",
                     engine != nullptr && !known.threads.has_value() ? "the first open LocalFeed"
                                                                     : "systole.configure()",
                     " has set: leave threads out, or ",
                     engine != nullptr ? "close all LocalFeeds and then " : "",
                     "call systole.configure(threads=", *threads, ")")));
  }
  if (engine == nullptr) {
    LocalEngineOptions options = known.options;
    options.threads = in_force.value_or(threads.value_or(processors));
    engine = ValueOrRaise(LocalEngine::Create(options));
    known.engine = engine;
  }
  return engine;
}

void DeclareProcessEngine(nb::module_& module) {
  module.def("configure", &Configure, nb::kw_only(), nb::arg("threads").none() = nb::none(),
             nb::arg("memory_budget").none() = nb::none(), nb::arg("read_budget"),
             nb::arg("block_cache"), nb::arg("block_cache_bytes"), "See systole.configure().");
}

}  // namespace systole::python
