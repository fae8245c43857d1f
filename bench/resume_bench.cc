// Measures the time from opening a stream to its first slice. Compares a stream that resumes far
// into a feed with a stream that starts at the feed's beginning. The two measurements take turns
// inside one iteration, so that the ratio holds on a noisy machine.
#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "bench/rounds.h"
#include "benchmark/benchmark.h"
#include "core/engine/step_engine.h"
#include "core/plan/feed_plan.h"
#include "core/record/tfrecord/tfrecord_shard.h"
#include "core/status/check.h"
#include "core/storage/memory_source.h"
#include "systole/v1/feed.pb.h"
#include "tests/core/record/tfrecord/shard_builder.h"

namespace systole {
namespace {

// 64 shards of 1,000 raw records.
std::shared_ptr<const Dataset> MakeDataset() {
  std::vector<std::unique_ptr<const RecordSource>> shards;
  for (int s = 0; s < 64; ++s) {
    ShardBuilder builder;
    for (int r = 0; r < 1000; ++r) builder.Add(std::string(784, static_cast<char>(s * 1000 + r)));
    absl::StatusOr<TfRecordShard> shard = TfRecordShard::Create(
        std::make_unique<MemorySource>(builder.Build(), absl::StrCat("shard-", s)));
    SYSTOLE_CHECK(shard.ok());
    shards.push_back(std::make_unique<TfRecordShard>(*std::move(shard)));
  }
  absl::StatusOr<std::shared_ptr<Dataset>> dataset = Dataset::Create("raw", std::move(shards));
  SYSTOLE_CHECK(dataset.ok());
  return *dataset;
}

v1::FeedSpec MakeSpec() {
  v1::FeedSpec spec;
  spec.set_dataset("raw");
  spec.set_seed(1);
  spec.mutable_shuffle()->set_mode(v1::Shuffle::GLOBAL);
  spec.set_global_batch(128);
  spec.set_num_cores(8);
  v1::Output& output = *spec.add_outputs();
  output.set_name("x");
  output.set_feature("record");
  output.add_shape(784);
  output.add_transforms()->mutable_decode_raw();
  output.set_dtype(v1::UINT8);
  return spec;
}

double FirstSliceMicroseconds(StepEngine& engine, const std::shared_ptr<const FeedPlan>& plan,
                              int64_t first_step) {
  const auto start = std::chrono::steady_clock::now();
  absl::StatusOr<std::unique_ptr<StepStream>> stream =
      engine.Open(plan, {.first_step = first_step, .count = 1, .core_end = 8});
  SYSTOLE_CHECK(stream.ok());
  StepStream::Result slice = (*stream)->Next();
  SYSTOLE_CHECK(slice.ok() && slice->has_value());
  return std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - start)
      .count();
}

void BM_FirstSliceAtStep(benchmark::State& state) {
  absl::StatusOr<std::shared_ptr<const FeedPlan>> plan =
      FeedPlan::Create(MakeSpec(), MakeDataset());
  SYSTOLE_CHECK(plan.ok());
  StepEngine engine({.threads = 1});
  const int times = static_cast<int>(bench::ScaledWork(400));
  // A round opens many streams, because one opening takes only microseconds.
  const auto first_slices = [&](int64_t step) -> bench::Sample {
    std::vector<double> microseconds;
    for (int i = 0; i < times; ++i) {
      microseconds.push_back(FirstSliceMicroseconds(engine, *plan, step));
    }
    return {.amount = bench::Median(microseconds), .seconds = 1};
  };
  for (auto _ : state) {
    const std::vector<std::vector<bench::Sample>> samples = bench::TakeTurns(
        {[&] { return first_slices(state.range(0)); }, [&] { return first_slices(0); }});
    bench::ReportRow(state, "ratio",
                     {.figure = absl::StrCat("first slice at step ", state.range(0)),
                      .ceiling = "first slice at step 0",
                      .unit = "us",
                      .wanted = 1.2,
                      .bound = bench::Bound::kAtMost},
                     samples[0], samples[1]);
  }
}
BENCHMARK(BM_FirstSliceAtStep)->ArgName("step")->Arg(1'000'000)->Arg(1'000'000'000)->Iterations(1);

}  // namespace
}  // namespace systole
