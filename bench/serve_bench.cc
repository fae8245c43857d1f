// Delivered batches: a systole-server and a client in two processes on the cores of one machine,
// against the same engine in one process that delivers to nobody. What is missing from 1 is what
// the wire costs.
//
// Every step asked for is delivered within the time measured, from the opening of the feed on, so
// that neither side works ahead for nothing.
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "bench/photograph_feed.h"
#include "bench/rounds.h"
#include "benchmark/benchmark.h"
#include "client/feed_client.h"
#include "core/flow/worker_pool.h"
#include "core/memory/allocator.h"
#include "core/pipeline/feed_plan.h"
#include "core/pipeline/step_engine.h"
#include "core/status/check.h"

namespace systole::bench {
namespace {

void TakeFromEngine(StepEngine& engine, const std::shared_ptr<const FeedPlan>& plan,
                    int64_t steps) {
  absl::StatusOr<std::unique_ptr<StepStream>> stream =
      engine.Open(plan, {.count = steps, .core_end = plan->num_cores()});
  SYSTOLE_CHECK(stream.ok());
  for (int64_t slice = 0; slice < steps * plan->num_cores(); ++slice) {
    StepStream::Result result = (*stream)->Next();
    SYSTOLE_CHECK(result.ok() && result->has_value());
  }
}

void TakeFromServer(const std::string& address, const v1::FeedSpec& spec, int64_t steps) {
  absl::StatusOr<std::unique_ptr<FeedClient>> client =
      FeedClient::Create(spec, {.servers = {address}, .steps = steps});
  SYSTOLE_CHECK(client.ok());
  for (int64_t step = 0; step < steps; ++step) {
    absl::StatusOr<std::optional<Step>> taken = (*client)->Next();
    SYSTOLE_CHECK(taken.ok() && taken->has_value());
  }
}

void BM_ServeAgainstPipeline(benchmark::State& state, v1::DataType dtype, double wanted) {
  const v1::FeedSpec spec = SpecOf({.dtype = dtype});
  const absl::StatusOr<std::shared_ptr<const FeedPlan>> plan =
      FeedPlan::Create(spec, OpenPhotographs());
  SYSTOLE_CHECK(plan.ok());
  const int64_t steps = ScaledWork(40);
  const auto bytes =
      static_cast<double>(steps * (*plan)->num_cores() * (*plan)->layout().payload_bytes());
  StepEngine engine({.threads = UsableProcessors()});
  const std::unique_ptr<ServerProcess> server = ServePhotographs();
  const Side pipeline = [&] {
    return Measure(bytes, [&] { TakeFromEngine(engine, *plan, steps); });
  };
  const Side served = [&] {
    const ServerUse before = UseOf(*server);
    Sample sample = Measure(bytes, [&] { TakeFromServer(server->address(), spec, steps); });
    const ServerUse after = UseOf(*server);
    sample.cpu_seconds += after.cpu_seconds - before.cpu_seconds;
    sample.peak_bytes += after.peak_bytes;
    return sample;
  };
  for (auto _ : state) {
    const std::vector<std::vector<Sample>> samples = TakeTurns({served, pipeline});
    const std::string name(v1::DataType_Name(dtype));
    ReportRow(state, "of_pipeline",
              {.figure = absl::StrCat("server + client, ", name),
               .ceiling = absl::StrCat("pipeline in one process, ", name),
               .unit = "GB/s",
               .unit_size = 1e9,
               .wanted = wanted},
              samples[0], samples[1]);
    const char* const names[] = {"served", "pipeline"};
    for (int side = 0; side < 2; ++side) {
      std::vector<double> img_per_s;
      std::vector<double> cpu_s_per_gb;
      for (const Sample& sample : samples[side]) {
        img_per_s.push_back(static_cast<double>(steps * spec.global_batch()) / sample.seconds);
        cpu_s_per_gb.push_back(sample.cpu_seconds / sample.amount * 1e9);
      }
      state.counters[absl::StrCat(names[side], "_img/s")] = Median(img_per_s);
      state.counters[absl::StrCat(names[side], "_cpu_s/GB")] = Median(cpu_s_per_gb);
    }
  }
}
BENCHMARK_CAPTURE(BM_ServeAgainstPipeline, u8, v1::UINT8, /*wanted=*/0.85)
    ->Iterations(1)
    ->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(BM_ServeAgainstPipeline, bf16, v1::BFLOAT16, /*wanted=*/0.75)
    ->Iterations(1)
    ->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace systole::bench

int main(int argc, char** argv) {
  systole::KeepFreedMemory();
  return systole::bench::RunBenchmarks(argc, argv);
}
