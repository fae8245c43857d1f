// Measures the host pipeline (record -> JPEG -> random-resized crop -> flip -> normalise -> cast).
// The pipeline is complete: a StepEngine reads shards in files (in the page cache), with checksums,
// parsing, order, budget and hand-over. The ceiling is bare libjpeg-turbo, which decodes the same
// crops of the same JPEGs from memory and drops the pixels. No program that decodes with libjpeg
// can be faster.
#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "bench/bare_decoder.h"
#include "bench/corpora.h"
#include "bench/photographs.h"
#include "bench/rounds.h"
#include "benchmark/benchmark.h"
#include "core/concurrency/processors.h"
#include "core/concurrency/worker_pool.h"
#include "core/engine/example_filler.h"
#include "core/engine/step_engine.h"
#include "core/example/example_parser.h"
#include "core/image/window/crop.h"
#include "core/memory/aligned_buffer.h"
#include "core/operations/ops/image_window.h"
#include "core/plan/feed_plan.h"
#include "core/status/check.h"
#include "systole/v1/feed.pb.h"

namespace systole::bench {
namespace {

constexpr int kGlobalBatch = 128;

// Photographs in shards, and in memory the JPEG of each record.
struct Corpus {
  std::shared_ptr<const Dataset> dataset;
  std::vector<std::string> jpegs;
};

const Corpus& Photographs() {
  static const Corpus* corpus = [] {
    auto* made = new Corpus();
    absl::StatusOr<std::shared_ptr<Dataset>> dataset =
        Dataset::Open("photographs", PhotographShards());
    SYSTOLE_CHECK(dataset.ok());
    made->dataset = *dataset;
    AlignedBuffer scratch;
    for (int64_t record = 0; record < made->dataset->num_records(); ++record) {
      const absl::StatusOr<absl::string_view> payload = made->dataset->ReadRecord(record, scratch);
      SYSTOLE_CHECK(payload.ok());
      const absl::StatusOr<ExampleView> example = ExampleView::Parse(*payload);
      SYSTOLE_CHECK(example.ok());
      const absl::StatusOr<absl::string_view> jpeg = example->Find("image").BytesAt(0);
      SYSTOLE_CHECK(jpeg.ok());
      made->jpegs.emplace_back(*jpeg);
    }
    return made;
  }();
  return *corpus;
}

std::shared_ptr<const FeedPlan> MakePlan(v1::DataType type, int num_cores) {
  v1::FeedSpec spec;
  spec.set_dataset("photographs");
  spec.set_seed(7);
  spec.mutable_shuffle()->set_mode(v1::Shuffle::GLOBAL);
  spec.set_global_batch(kGlobalBatch);
  spec.set_num_cores(num_cores);
  v1::Output& image = *spec.add_outputs();
  image.set_name("image");
  image.set_feature("image");
  image.add_transforms()->mutable_decode_jpeg();
  v1::RandomResizedCrop& crop = *image.add_transforms()->mutable_random_resized_crop();
  crop.set_height(224);
  crop.set_width(224);
  image.add_transforms()->mutable_random_flip();
  if (type != v1::UINT8) {
    v1::Normalize& normalize = *image.add_transforms()->mutable_normalize();
    normalize.set_scale(1.0 / 255);
    for (const double mean : {0.485, 0.456, 0.406}) normalize.add_mean(mean);
    for (const double stddev : {0.229, 0.224, 0.225}) normalize.add_stddev(stddev);
  }
  image.set_dtype(type);
  v1::Output& label = *spec.add_outputs();
  label.set_name("label");
  label.set_feature("label");
  label.set_dtype(v1::INT32);
  absl::StatusOr<std::shared_ptr<const FeedPlan>> plan =
      FeedPlan::Create(spec, Photographs().dataset);
  SYSTOLE_CHECK(plan.ok());
  return *plan;
}

int64_t NumSteps() { return Photographs().dataset->num_records() / kGlobalBatch; }

// Makes the steps of an epoch and drops each slice as it comes.
Sample RunPipeline(StepEngine& engine, const std::shared_ptr<const FeedPlan>& plan) {
  return Measure(static_cast<double>(NumSteps() * kGlobalBatch), [&] {
    absl::StatusOr<std::unique_ptr<StepStream>> stream =
        engine.Open(plan, {.count = NumSteps(), .core_end = plan->num_cores()});
    SYSTOLE_CHECK(stream.ok());
    for (int64_t i = 0; i < NumSteps() * plan->num_cores(); ++i) {
      const StepStream::Result slice = (*stream)->Next();
      SYSTOLE_CHECK(slice.ok() && slice->has_value());
    }
  });
}

struct Crop {
  const std::string* jpeg;
  CropRect rect;
};

// The crops that the steps of the first epoch decode, in order.
std::vector<Crop> CropsOf(const FeedPlan& plan) {
  std::vector<Crop> crops;
  for (int64_t step = 0; step < NumSteps(); ++step) {
    for (int64_t slot = 0; slot < kGlobalBatch; ++slot) {
      const Place place = plan.order().PlaceOf(step, slot);
      const absl::StatusOr<ImageWindow> window =
          WindowOf(plan.outputs()[0].program.moves, kPhotographHeight, kPhotographWidth,
                   {.seed = plan.spec().seed(), .epoch = place.epoch, .record = *place.record});
      SYSTOLE_CHECK(window.ok());
      crops.push_back({&Photographs().jpegs[*place.record], window->rect});
    }
  }
  return crops;
}

Sample RunBare(const std::vector<Crop>& crops, int threads) {
  return Measure(static_cast<double>(crops.size()), [&] {
    std::atomic<size_t> next = 0;
    WorkerPool pool(threads);
    for (int i = 0; i < threads; ++i) {
      pool.Submit([&] {
        BareDecoder decoder;
        for (size_t crop = next++; crop < crops.size(); crop = next++) {
          decoder.Decode(*crops[crop].jpeg, crops[crop].rect);
        }
      });
    }
  });
}

// `samples` with twice the rate.
std::vector<Sample> Twice(std::vector<Sample> samples) {
  for (Sample& sample : samples) sample.amount *= 2;
  return samples;
}

// Compares the pipeline on one thread with bare decode on one thread, for three output types. Also
// compares the rate of two threads with twice the rate of one thread, for the pipeline and for bare
// decode.
void BM_Pipeline(benchmark::State& state) {
  const int num_cores = static_cast<int>(state.range(0));
  const std::shared_ptr<const FeedPlan> bf16 = MakePlan(v1::BFLOAT16, num_cores);
  const std::shared_ptr<const FeedPlan> f32 = MakePlan(v1::FLOAT32, num_cores);
  const std::shared_ptr<const FeedPlan> u8 = MakePlan(v1::UINT8, num_cores);
  const std::vector<Crop> crops = CropsOf(*bf16);
  StepEngine one({.threads = 1});
  StepEngine two({.threads = 2});
  // The first steps make the engines' buffers.
  for (const auto& plan : {bf16, f32, u8}) RunPipeline(one, plan);
  RunPipeline(two, bf16);
  for (auto _ : state) {
    const std::vector<std::vector<Sample>> samples = TakeTurns({
        [&] { return RunBare(crops, 1); },
        [&] { return RunPipeline(one, bf16); },
        [&] { return RunPipeline(one, f32); },
        [&] { return RunPipeline(one, u8); },
        [&] { return RunBare(crops, 2); },
        [&] { return RunPipeline(two, bf16); },
    });
    const std::string cores = absl::StrCat(num_cores, num_cores == 1 ? " core" : " cores");
    const auto report = [&](const std::string& counter, const std::string& figure,
                            const std::string& ceiling, std::optional<double> wanted,
                            const std::vector<Sample>& figures,
                            const std::vector<Sample>& ceilings) {
      ReportRow(state, counter,
                {.figure = figure, .ceiling = ceiling, .unit = "img/s", .wanted = wanted}, figures,
                ceilings);
    };
    const std::string bare = "bare libjpeg-turbo, the same crops, 1 thread";
    const auto one_thread = [&](const char* type) {
      return absl::StrCat("host pipeline, ", type, ", ", cores, ", 1 thread");
    };
    report("bf16", one_thread("bf16"), bare, 0.90, samples[1], samples[0]);
    report("f32", one_thread("f32"), bare, std::nullopt, samples[2], samples[0]);
    report("u8", one_thread("u8"), bare, std::nullopt, samples[3], samples[0]);
    report("two", absl::StrCat("host pipeline, bf16, ", cores, ", 2 threads"),
           "twice the host pipeline on 1 thread", 0.92, samples[5], Twice(samples[1]));
    report("bare_two", absl::StrCat("bare libjpeg-turbo, the crops of ", cores, ", 2 threads"),
           "twice bare libjpeg-turbo on 1 thread", std::nullopt, samples[4], Twice(samples[0]));
  }
}
BENCHMARK(BM_Pipeline)->ArgName("cores")->Arg(8)->Arg(1)->Iterations(1)->Unit(benchmark::kSecond);

// Measures images a second for several numbers of threads, up to twice the number of processors.
void BM_PipelineThreads(benchmark::State& state) {
  const std::shared_ptr<const FeedPlan> plan = MakePlan(v1::BFLOAT16, /*num_cores=*/8);
  const std::vector<Crop> crops = CropsOf(*plan);
  const int most = 2 * UsableProcessors();
  std::vector<std::unique_ptr<StepEngine>> engines;
  std::vector<Side> sides;
  for (int threads = 1; threads <= most; ++threads) {
    engines.push_back(std::make_unique<StepEngine>(StepEngineOptions{.threads = threads}));
    RunPipeline(*engines.back(), plan);
    sides.push_back([&, threads] { return RunPipeline(*engines[threads - 1], plan); });
    sides.push_back([&, threads] { return RunBare(crops, threads); });
  }
  for (auto _ : state) {
    const std::vector<std::vector<Sample>> samples = TakeTurns(sides);
    for (size_t side = 0; side < sides.size(); ++side) {
      std::vector<double> rates;
      for (const Sample& sample : samples[side]) rates.push_back(sample.rate());
      const double rate = Median(rates);
      const char* series = side % 2 == 0 ? "host pipeline, bf16" : "bare libjpeg-turbo";
      const double threads = static_cast<double>(side / 2 + 1);
      ReportPoint({.curve = "Host pipeline over threads",
                   .series = series,
                   .x_label = "threads",
                   .x = threads,
                   .y_label = "img/s",
                   .y = rate});
      state.counters[absl::StrCat(side % 2 == 0 ? "pipeline_" : "bare_", threads)] = rate;
    }
  }
}
BENCHMARK(BM_PipelineThreads)->Iterations(1)->Unit(benchmark::kSecond);

}  // namespace
}  // namespace systole::bench

int main(int argc, char** argv) { return systole::bench::RunBenchmarks(argc, argv); }
