// Measures what tuning by hand still gains. The gain should be zero. BM_Defaults compares the
// defaults with the best of several numbers of threads and budgets. BM_DistantStorage compares slow
// storage, whose reads wait, with the page cache.
#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "bench/corpora.h"
#include "bench/rounds.h"
#include "benchmark/benchmark.h"
#include "core/concurrency/processors.h"
#include "core/dataset/dataset.h"
#include "core/engine/step_engine.h"
#include "core/plan/feed_plan.h"
#include "core/record/tfrecord/tfrecord_shard.h"
#include "core/status/check.h"
#include "core/storage/byte_source.h"
#include "core/storage/local/file_source.h"
#include "systole/v1/feed.pb.h"

namespace systole::bench {
namespace {

constexpr int kGlobalBatch = 128;

// A file whose reads take as long as those of a store on the network.
class DistantFile final : public ByteSource {
 public:
  DistantFile(std::unique_ptr<FileSource> file, absl::Duration latency)
      : file_(std::move(file)), latency_(latency) {}

  absl::StatusOr<size_t> ReadAt(uint64_t offset, absl::Span<char> out) const override {
    absl::SleepFor(latency_);
    return file_->ReadAt(offset, out);
  }
  absl::StatusOr<uint64_t> Size() const override { return file_->Size(); }
  absl::Status CheckUnchanged() const override { return file_->CheckUnchanged(); }
  absl::string_view name() const override { return file_->name(); }

 private:
  const std::unique_ptr<FileSource> file_;
  const absl::Duration latency_;
};

std::shared_ptr<Dataset> Open(absl::Duration latency) {
  std::vector<std::unique_ptr<const RecordSource>> shards;
  for (const std::string& path : PhotographShards()) {
    absl::StatusOr<std::unique_ptr<FileSource>> file = FileSource::Open(path);
    SYSTOLE_CHECK(file.ok());
    absl::StatusOr<TfRecordShard> shard =
        latency == absl::ZeroDuration()
            ? TfRecordShard::Create(*std::move(file))
            : TfRecordShard::Create(std::make_unique<DistantFile>(*std::move(file), latency));
    SYSTOLE_CHECK(shard.ok());
    shards.push_back(std::make_unique<TfRecordShard>(*std::move(shard)));
  }
  absl::StatusOr<std::shared_ptr<Dataset>> dataset =
      Dataset::Create("photographs", std::move(shards));
  SYSTOLE_CHECK(dataset.ok());
  return *dataset;
}

std::shared_ptr<const FeedPlan> MakePlan(const std::shared_ptr<Dataset>& dataset) {
  v1::FeedSpec spec;
  spec.set_dataset("photographs");
  spec.set_seed(7);
  spec.mutable_shuffle()->set_mode(v1::Shuffle::GLOBAL);
  spec.set_global_batch(kGlobalBatch);
  spec.set_num_cores(8);
  v1::Output& image = *spec.add_outputs();
  image.set_name("image");
  image.set_feature("image");
  image.add_transforms()->mutable_decode_jpeg();
  v1::RandomResizedCrop& crop = *image.add_transforms()->mutable_random_resized_crop();
  crop.set_height(224);
  crop.set_width(224);
  image.set_dtype(v1::UINT8);
  absl::StatusOr<std::shared_ptr<const FeedPlan>> plan = FeedPlan::Create(spec, dataset);
  SYSTOLE_CHECK(plan.ok());
  return *plan;
}

// Makes the steps of an epoch and drops each slice as it comes.
Sample RunEpoch(StepEngine& engine, const std::shared_ptr<const FeedPlan>& plan) {
  const int64_t steps = plan->order().steps_per_epoch();
  return Measure(static_cast<double>(steps * kGlobalBatch), [&] {
    absl::StatusOr<std::unique_ptr<StepStream>> stream =
        engine.Open(plan, {.count = steps, .core_end = plan->num_cores()});
    SYSTOLE_CHECK(stream.ok());
    for (int64_t i = 0; i < steps * plan->num_cores(); ++i) {
      const StepStream::Result slice = (*stream)->Next();
      SYSTOLE_CHECK(slice.ok() && slice->has_value());
    }
  });
}

// Returns, for each round, the sample of the side that had the highest rate in this round.
std::vector<Sample> BestOf(absl::Span<const std::vector<Sample>> sides) {
  std::vector<Sample> best = sides[0];
  for (const std::vector<Sample>& side : sides) {
    for (size_t round = 0; round < best.size(); ++round) {
      if (side[round].rate() > best[round].rate()) best[round] = side[round];
    }
  }
  return best;
}

void BM_Defaults(benchmark::State& state) {
  const std::shared_ptr<const FeedPlan> plan = MakePlan(Open(absl::ZeroDuration()));
  const int processors = UsableProcessors();
  std::vector<std::unique_ptr<StepEngine>> engines;
  std::vector<Side> sides;
  const auto add = [&](const StepEngineOptions& options) {
    engines.push_back(std::make_unique<StepEngine>(options));
    StepEngine& engine = *engines.back();
    RunEpoch(engine, plan);  // The first steps make the engine's buffers.
    sides.emplace_back([&engine, &plan] { return RunEpoch(engine, plan); });
  };
  add({.threads = processors});
  for (const int threads : {std::max(1, processors / 2), 2 * processors, 4 * processors}) {
    add({.threads = threads, .max_threads = threads});
  }
  add({.threads = processors, .max_threads = processors, .memory_budget_bytes = int64_t{8} << 30});
  for (auto _ : state) {
    const std::vector<std::vector<Sample>> samples = TakeTurns(sides);
    ReportRow(state, "of_best",
              {.figure = "host pipeline, u8, threads, look-ahead and windows as they are",
               .ceiling = "the best of four settings by hand",
               .unit = "img/s",
               .wanted = 0.95},
              samples[0], BestOf(absl::MakeSpan(samples).subspan(1)));
  }
}
BENCHMARK(BM_Defaults)->Iterations(1)->Unit(benchmark::kSecond);

void BM_DistantStorage(benchmark::State& state) {
  const std::shared_ptr<const FeedPlan> near = MakePlan(Open(absl::ZeroDuration()));
  const std::shared_ptr<const FeedPlan> distant = MakePlan(Open(absl::Milliseconds(1)));
  const int processors = UsableProcessors();
  StepEngine adapts({.threads = processors});
  StepEngine fixed({.threads = processors, .max_threads = processors});
  RunEpoch(adapts, near);
  RunEpoch(fixed, near);
  for (auto _ : state) {
    const auto samples =
        TakeTurns({[&] { return RunEpoch(adapts, distant); }, [&] { return RunEpoch(fixed, near); },
                   [&] { return RunEpoch(fixed, distant); }});
    ReportRow(state, "of_near",
              {.figure = "host pipeline, u8, every read takes 1 ms longer",
               .ceiling = "the same from the page cache",
               .unit = "img/s",
               .wanted = 0.75},
              samples[0], samples[1]);
    ReportRow(state, "times_fixed",
              {.figure = "host pipeline, u8, every read takes 1 ms longer",
               .ceiling = "the same with a thread for each processor, no more",
               .unit = "img/s",
               .wanted = 1.5},
              samples[0], samples[2]);
  }
}
BENCHMARK(BM_DistantStorage)->Iterations(1)->Unit(benchmark::kSecond);

}  // namespace
}  // namespace systole::bench
