// Measures what pacing costs. Eight cores, whose queues are always full, take steps of a given time
// by the wall clock. Real chips would be busy all the time: their utilisation (AU) would be 1.
// `wall_au` is below 1 by the emulator's own share of the time. The steps of 272 to 29 ms are
// ResNet-50's on v2, v3, v4, v5e, v5p and v6e, at 128 examples a core. The step of 375 us is the
// shortest one that we want to pace.
#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "bench/rounds.h"
#include "benchmark/benchmark.h"
#include "client/emulator/timing/paced_run.h"
#include "client/infeed/infeed_queue.h"
#include "core/concurrency/worker_pool.h"
#include "core/status/check.h"

namespace systole {
namespace {

constexpr int kCores = 8;

emulator::PacedResult Pace(absl::Duration step_time, int64_t steps) {
  std::vector<std::unique_ptr<InfeedQueue>> queues;
  for (int core = 0; core < kCores; ++core) queues.push_back(std::make_unique<InfeedQueue>(2));
  WorkerPool feeder(1);
  feeder.Submit([&queues] {
    for (int64_t step = 0;; ++step) {
      for (int core = 0; core < kCores; ++core) {
        if (!queues[static_cast<size_t>(core)]->Push({.step = step, .core = core}).ok()) return;
      }
    }
  });
  const absl::StatusOr<emulator::PacedResult> result = emulator::RunPaced(
      [&](int core) -> absl::StatusOr<std::optional<emulator::SliceArrival>> {
        const absl::StatusOr<std::optional<CoreStep>> step =
            queues[static_cast<size_t>(core)]->Pop();
        SYSTOLE_CHECK(step.ok() && step->has_value());
        return emulator::SliceArrival{.step = (*step)->step, .arrived_at = (*step)->arrived_at};
      },
      {.infeed = {.num_cores = kCores, .step_time = step_time}, .max_steps = steps});
  for (auto& queue : queues) queue->Cancel(absl::CancelledError("enough"));
  SYSTOLE_CHECK(result.ok());
  return *result;
}

void BM_PaceReadyFeed(benchmark::State& state) {
  const absl::Duration step_time = absl::Microseconds(state.range(0));
  // As many steps as take 0.4 s, but at least a few: `wall_au` counts how late the last step ends,
  // and among very few steps this delay would weigh too much.
  const int64_t steps = std::max(
      {absl::Milliseconds(bench::ScaledWork(400)) / step_time, bench::ScaledWork(4), int64_t{2}});
  for (auto _ : state) {
    std::optional<emulator::PacedResult> last;
    const auto samples =
        bench::TakeTurns({[&] {
                            last = Pace(step_time, steps);
                            return bench::Sample{.amount = *last->wall_au, .seconds = 1};
                          },
                          [] { return bench::Sample{.amount = 1, .seconds = 1}; }});
    bench::ReportRow(
        state, "wall_au",
        {.figure = absl::StrCat("emulator, AU of full queues, steps of ", state.range(0), " us"),
         .ceiling = "no time lost",
         .unit = "AU",
         .wanted = 0.99},
        samples[0], samples[1]);
    // These counters are of the last round only.
    const auto counted = static_cast<double>(last->books.steps());
    state.counters["au"] = *last->books.utilisation().au;
    state.counters["noticing_us"] = absl::ToDoubleMicroseconds(last->overhead.noticing) / counted;
    state.counters["work_us"] = absl::ToDoubleMicroseconds(last->overhead.work) / counted;
    state.counters["max_late_us"] = absl::ToDoubleMicroseconds(last->overhead.max_late);
  }
}
BENCHMARK(BM_PaceReadyFeed)
    ->ArgName("step_us")
    ->Arg(272'000)
    ->Arg(145'000)
    ->Arg(90'000)
    ->Arg(65'000)
    ->Arg(44'000)
    ->Arg(29'000)
    ->Arg(2'500)
    ->Arg(375)
    ->Iterations(1)
    ->UseRealTime()
    ->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace systole
