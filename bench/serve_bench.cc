// Measures how fast a client gets batches. The figure has a systole-server and a client, which are
// two processes on the cores of one machine. The ceiling is the same engine in one process, which
// drops its batches. The ratio is less than 1, because the figure also moves batches between
// processes. They move in one of three ways: by TCP, by shared memory (unix:), or by compact TCP.
// With compact TCP, pixels are rounded and travel as uint8, and the client normalises them.
//
// The figure's time begins before the feed is opened, and ends when the last step is delivered. So
// this time includes the making of every step.
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "bench/photograph_feed.h"
#include "bench/rounds.h"
#include "benchmark/benchmark.h"
#include "client/feed/feed_client.h"
#include "core/concurrency/processors.h"
#include "core/engine/step_engine.h"
#include "core/plan/feed_plan.h"
#include "core/process/allocator.h"
#include "core/status/check.h"
#include "tests/core/storage/temp_folder.h"

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
  // Checks that the batches came in the way that the row names. If that way fails, a client takes
  // another and reports no error.
  const FeedClientStats stats = (*client)->stats();
  SYSTOLE_CHECK((stats.shared_payload_bytes > 0) == absl::StartsWith(address, "unix:"));
  SYSTOLE_CHECK((stats.compact_steps > 0) == (*client)->can_be_compact());
}

std::shared_ptr<const FeedPlan> PlanOf(const v1::FeedSpec& spec) {
  absl::StatusOr<std::shared_ptr<const FeedPlan>> plan = FeedPlan::Create(spec, OpenPhotographs());
  SYSTOLE_CHECK(plan.ok());
  return *std::move(plan);
}

// Returns `spec` with a step that rounds pixels before they are normalised. Such pixels can travel
// as uint8. The ceiling takes the unchanged spec, because rounding would not change its time.
v1::FeedSpec Compact(v1::FeedSpec spec) {
  auto& transforms = *spec.mutable_outputs(0)->mutable_transforms();
  const v1::Transform normalize = transforms.Get(transforms.size() - 1);
  SYSTOLE_CHECK(normalize.has_normalize());
  transforms.RemoveLast();
  transforms.Add()->mutable_round_to_uint8();
  *transforms.Add() = normalize;
  return spec;
}

// A row of the table: one way from the server to the client.
struct Figure {
  std::string name;     // The way's name in the table.
  std::string counter;  // The prefix of the names of its counters.
  Side side;
};

// Reports two more figures of a side as counters: images a second, and CPU seconds for a GB.
void ReportCost(benchmark::State& state, const std::string& counter, double images,
                const std::vector<Sample>& samples) {
  std::vector<double> img_per_s;
  std::vector<double> cpu_s_per_gb;
  for (const Sample& sample : samples) {
    img_per_s.push_back(images / sample.seconds);
    cpu_s_per_gb.push_back(sample.cpu_seconds / sample.amount * 1e9);
  }
  state.counters[absl::StrCat(counter, "_img/s")] = Median(img_per_s);
  state.counters[absl::StrCat(counter, "_cpu_s/GB")] = Median(cpu_s_per_gb);
}

void BM_ServeAgainstPipeline(benchmark::State& state, v1::DataType dtype, double wanted) {
  const v1::FeedSpec spec = SpecOf({.dtype = dtype});
  const std::shared_ptr<const FeedPlan> plan = PlanOf(spec);
  const int64_t steps = ScaledWork(40);
  const auto bytes =
      static_cast<double>(steps * plan->num_cores() * plan->layout().payload_bytes());
  StepEngine engine({.threads = UsableProcessors()});
  const TempFolder folder;
  const std::string socket = absl::StrCat("unix:", folder / "socket");
  const std::unique_ptr<ServerProcess> by_tcp = ServePhotographs();
  const std::unique_ptr<ServerProcess> shared = ServePhotographs({"--listen", socket});
  const auto served = [&](ServerProcess& server, const std::string& address,
                          const v1::FeedSpec& wanted_spec) -> Side {
    return [&server, address, wanted_spec, steps, bytes] {
      const ServerUse before = UseOf(server);
      Sample sample = Measure(bytes, [&] { TakeFromServer(address, wanted_spec, steps); });
      const ServerUse after = UseOf(server);
      sample.cpu_seconds += after.cpu_seconds - before.cpu_seconds;
      sample.peak_bytes += after.peak_bytes;
      return sample;
    };
  };
  std::vector<Figure> figures = {
      {"server + client, TCP", "served", served(*by_tcp, by_tcp->address(), spec)},
      {"server + client, unix:", "shared", served(*shared, socket, spec)}};
  if (dtype != v1::UINT8) {
    figures.push_back({"server + client, TCP compact", "compact",
                       served(*by_tcp, by_tcp->address(), Compact(spec))});
  }
  std::vector<Side> sides;
  for (const Figure& figure : figures) sides.push_back(figure.side);
  sides.push_back([&] { return Measure(bytes, [&] { TakeFromEngine(engine, plan, steps); }); });
  for (auto _ : state) {
    const std::vector<std::vector<Sample>> samples = TakeTurns(sides);
    const std::string name(v1::DataType_Name(dtype));
    const auto images = static_cast<double>(steps * spec.global_batch());
    for (size_t i = 0; i < figures.size(); ++i) {
      const std::string counter =
          i == 0 ? "of_pipeline" : absl::StrCat(figures[i].counter, "_of_pipeline");
      ReportRow(state, counter,
                {.figure = absl::StrCat(figures[i].name, ", ", name),
                 .ceiling = absl::StrCat("pipeline in one process, ", name),
                 .unit = "GB/s",
                 .unit_size = 1e9,
                 .wanted = wanted},
                samples[i], samples.back());
      ReportCost(state, figures[i].counter, images, samples[i]);
    }
    ReportCost(state, "pipeline", images, samples.back());
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
