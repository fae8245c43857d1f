// Resuming far into a feed against starting at its beginning: the time from opening a stream to its
// first slice. The two take turns inside one iteration, so that the ratio holds on a noisy machine.
#include <algorithm>
#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "benchmark/benchmark.h"
#include "core/pipeline/feed_plan.h"
#include "core/pipeline/step_engine.h"
#include "core/record/shard.h"
#include "core/status/check.h"
#include "core/storage/memory_source.h"
#include "systole/v1/feed.pb.h"
#include "tests/core/record/shard_builder.h"

namespace systole {
namespace {

// 64 shards of 1,000 raw records.
std::shared_ptr<const Dataset> MakeDataset() {
  std::vector<Shard> shards;
  for (int s = 0; s < 64; ++s) {
    ShardBuilder builder;
    for (int r = 0; r < 1000; ++r) builder.Add(std::string(784, static_cast<char>(s * 1000 + r)));
    absl::StatusOr<Shard> shard =
        Shard::Create(std::make_unique<MemorySource>(builder.Build(), absl::StrCat("shard-", s)));
    SYSTOLE_CHECK(shard.ok());
    shards.push_back(*std::move(shard));
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
  std::vector<double> at_zero;
  std::vector<double> far;
  for (auto _ : state) {
    at_zero.push_back(FirstSliceMicroseconds(engine, *plan, 0));
    far.push_back(FirstSliceMicroseconds(engine, *plan, state.range(0)));
  }
  const auto median = [](std::vector<double>& values) {
    std::nth_element(values.begin(), values.begin() + values.size() / 2, values.end());
    return values[values.size() / 2];
  };
  state.counters["at_step_0_us"] = median(at_zero);
  state.counters["far_us"] = median(far);
  state.counters["ratio"] = median(far) / median(at_zero);  // Wanted: under 1.2.
}
BENCHMARK(BM_FirstSliceAtStep)->ArgName("step")->Arg(1'000'000)->Arg(1'000'000'000);

}  // namespace
}  // namespace systole
