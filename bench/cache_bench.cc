// Measures what the `cache` of an output saves.
//   BM_CachedExample  A hit: makes an example (a random crop, mirrored, normalised, bf16) from
//                     decoded pixels in memory. Compared with memcpy of the example's bytes, and
//                     with making the example from its JPEG.
//   BM_FinishedFeed   A feed without random steps. The cache keeps the feed's finished examples, or
//                     its resized images rounded to uint8. Compared with memcpy of the examples.
//   BM_CachedFeed     A feed whose cache holds all images, and a feed whose cache has room for a
//                     tenth of them. Both are compared with the feed without a cache.
#include <cstdint>
#include <cstring>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "bench/corpora.h"
#include "bench/photographs.h"
#include "bench/rounds.h"
#include "benchmark/benchmark.h"
#include "core/cache/value_cache.h"
#include "core/engine/step_engine.h"
#include "core/example/example_parser.h"
#include "core/image/jpeg/huffman_decoder.h"
#include "core/memory/aligned_buffer.h"
#include "core/operations/program_runner.h"
#include "core/plan/feed_plan.h"
#include "core/status/check.h"
#include "systole/v1/feed.pb.h"

namespace systole::bench {
namespace {

constexpr int kGlobalBatch = 128;
constexpr int kEdge = 224;
constexpr int64_t kExampleBytes = int64_t{kEdge} * kEdge * 3 * 2;

std::shared_ptr<const Dataset> Photographs() {
  static const std::shared_ptr<const Dataset>* const dataset = [] {
    absl::StatusOr<std::shared_ptr<Dataset>> opened =
        Dataset::Open("photographs", PhotographShards());
    SYSTOLE_CHECK(opened.ok());
    return new std::shared_ptr<const Dataset>(*opened);
  }();
  return *dataset;
}

v1::FeedSpec SpecOf(v1::DataType dtype) {
  v1::FeedSpec spec;
  spec.set_dataset("photographs");
  spec.set_seed(7);
  spec.mutable_shuffle()->set_mode(v1::Shuffle::GLOBAL);
  spec.set_global_batch(kGlobalBatch);
  spec.set_num_cores(1);
  v1::Output& image = *spec.add_outputs();
  image.set_name("image");
  image.set_feature("image");
  image.add_transforms()->mutable_decode_jpeg();
  image.set_cache(v1::MEMORY);
  image.set_dtype(dtype);
  return spec;
}

std::shared_ptr<const FeedPlan> PlanOf(const v1::FeedSpec& spec) {
  absl::StatusOr<std::shared_ptr<const FeedPlan>> plan = FeedPlan::Create(spec, Photographs());
  SYSTOLE_CHECK(plan.ok());
  return *plan;
}

// A feed whose decoded images a cache can keep.
std::shared_ptr<const FeedPlan> RandomCrops() {
  v1::FeedSpec spec = SpecOf(v1::BFLOAT16);
  v1::Output& image = *spec.mutable_outputs(0);
  v1::RandomCrop& crop = *image.add_transforms()->mutable_random_crop();
  crop.set_height(kEdge);
  crop.set_width(kEdge);
  image.add_transforms()->mutable_random_flip();
  v1::Normalize& normalize = *image.add_transforms()->mutable_normalize();
  normalize.set_scale(1.0 / 255);
  for (const double mean : {0.485, 0.456, 0.406}) normalize.add_mean(mean);
  for (const double stddev : {0.229, 0.224, 0.225}) normalize.add_stddev(stddev);
  return PlanOf(spec);
}

// A feed without random steps. A cache keeps the feed's finished examples or, if `rounds`, its
// resized images rounded to uint8.
std::shared_ptr<const FeedPlan> WholeImages(v1::DataType dtype, bool rounds) {
  v1::FeedSpec spec = SpecOf(dtype);
  v1::Output& image = *spec.mutable_outputs(0);
  image.add_transforms()->mutable_resize()->set_height(kEdge);
  image.mutable_transforms(1)->mutable_resize()->set_width(kEdge);
  if (rounds) image.add_transforms()->mutable_round_to_uint8();
  image.add_transforms()->mutable_normalize()->set_scale(1.0 / 255);
  return PlanOf(spec);
}

// The photographs of one batch, as JPEGs and as decoded pixels.
struct Images {
  std::vector<std::string> jpegs;
  std::vector<Value> pixels;
};

Images DecodeAll(const OutputPlan& output) {
  Images images;
  AlignedBuffer scratch;
  for (int64_t record = 0; record < kGlobalBatch; ++record) {
    const absl::StatusOr<absl::string_view> payload = Photographs()->ReadRecord(record, scratch);
    SYSTOLE_CHECK(payload.ok());
    const absl::StatusOr<ExampleView> example = ExampleView::Parse(*payload);
    SYSTOLE_CHECK(example.ok());
    images.jpegs.emplace_back(*example->Find("image").BytesAt(0));
    Value stored;
    stored.bytes = images.jpegs.back();
    absl::StatusOr<Value> pixels =
        output.program.program->Run(std::move(stored), {}, 0, output.cache->forms[0].value.steps);
    SYSTOLE_CHECK(pixels.ok());
    images.pixels.push_back(*std::move(pixels));
  }
  return images;
}

void BM_CachedExample(benchmark::State& state) {
  const std::shared_ptr<const FeedPlan> plan = RandomCrops();
  const OutputPlan& output = plan->outputs()[0];
  const Images images = DecodeAll(output);
  const LoweredProgram& lowered_rest = *output.cache->forms[0].rest;
  absl::StatusOr<ProgramRunner> rest = ProgramRunner::Create(lowered_rest, nullptr);
  absl::StatusOr<ProgramRunner> whole =
      ProgramRunner::Create(output.program, std::make_shared<HuffmanDecoder>());
  SYSTOLE_CHECK(rest.ok() && whole.ok());
  std::vector<uint8_t> scratch;
  // Each example has its own place in a batch, so that writes go to memory, and not to a place that
  // a cache of the processor still holds.
  std::vector<uint8_t> batch(kGlobalBatch * kExampleBytes);
  const std::vector<uint8_t> source(batch.size(), 77);
  const int64_t epochs = ScaledWork(40);
  const auto side = [&](const auto& make) {
    return [&, make] {
      return Measure(static_cast<double>(epochs * kGlobalBatch * kExampleBytes), [&] {
        for (int64_t epoch = 0; epoch < epochs; ++epoch) {
          for (int64_t i = 0; i < kGlobalBatch; ++i) {
            make(ExampleKey{.seed = 7, .epoch = epoch, .record = i}, static_cast<size_t>(i),
                 absl::MakeSpan(batch).subspan(static_cast<size_t>(i * kExampleBytes),
                                               kExampleBytes));
          }
          benchmark::DoNotOptimize(batch.data());
        }
      });
    };
  };
  const auto hit = side([&](const ExampleKey& key, size_t i, absl::Span<uint8_t> out) {
    const Value& image = images.pixels[i];
    const absl::string_view pixels(reinterpret_cast<const char*>(image.uint8s.data()),
                                   image.uint8s.size());
    SYSTOLE_CHECK(
        rest->Run(lowered_rest, {.bytes = pixels, .shape = image.type.shape}, key, scratch, out)
            .ok());
  });
  const auto copy = side([&](const ExampleKey&, size_t i, absl::Span<uint8_t> out) {
    std::memcpy(out.data(), source.data() + i * kExampleBytes, kExampleBytes);
  });
  const auto decode = side([&](const ExampleKey& key, size_t i, absl::Span<uint8_t> out) {
    SYSTOLE_CHECK(whole->Begin(output.program, images.jpegs[i], key).ok());
    SYSTOLE_CHECK(whole->Run(output.program, {.bytes = images.jpegs[i]}, key, scratch, out).ok());
  });
  for (auto _ : state) {
    const auto samples = TakeTurns({hit, copy, decode});
    const Row row = {
        .figure = "decoded image in memory to a random crop, mirrored, normalised, bf16",
        .ceiling = "memcpy of the output's bytes",
        .unit = "GB/s",
        .unit_size = 1e9,
        .wanted = 0.30};
    ReportRow(state, "of_memcpy", row, samples[0], samples[1]);
    Row against_decode = row;
    against_decode.ceiling = "the same from the JPEG";
    against_decode.wanted = 3;
    ReportRow(state, "times_decode", against_decode, samples[0], samples[2]);
  }
}
BENCHMARK(BM_CachedExample)->Iterations(1)->Unit(benchmark::kMillisecond);

// An epoch of the feed on one thread.
Sample RunEpoch(StepEngine& engine, const std::shared_ptr<const FeedPlan>& plan,
                const std::shared_ptr<ValueCache>& cache, int64_t epoch) {
  const int64_t steps = plan->order().steps_per_epoch();
  return Measure(static_cast<double>(steps * kGlobalBatch), [&] {
    absl::StatusOr<std::unique_ptr<StepStream>> stream =
        engine.Open(plan, {.first_step = epoch * steps, .count = steps}, {}, "", cache);
    SYSTOLE_CHECK(stream.ok());
    for (int64_t i = 0; i < steps; ++i) {
      const StepStream::Result slice = (*stream)->Next();
      SYSTOLE_CHECK(slice.ok() && slice->has_value());
    }
  });
}

void BM_FinishedFeed(benchmark::State& state) {
  const auto dtype = static_cast<v1::DataType>(state.range(0));
  const bool rounds = state.range(1) != 0;
  const std::shared_ptr<const FeedPlan> plan = WholeImages(dtype, rounds);
  const auto example_bytes = static_cast<size_t>(plan->layout().payload_bytes() / kGlobalBatch);
  StepEngine engine({.threads = 1});
  absl::StatusOr<std::unique_ptr<ValueCache>> made = ValueCache::Create(
      {.memory_bytes = Photographs()->num_records() * static_cast<int64_t>(example_bytes + 1024)});
  SYSTOLE_CHECK(made.ok());
  const std::shared_ptr<ValueCache> cache = *std::move(made);
  RunEpoch(engine, plan, cache, 0);
  // The memcpy copies from as many examples as the feed has. They do not fit into the processor's
  // caches, so both sides read from memory.
  const auto records = static_cast<size_t>(Photographs()->num_records());
  const std::vector<std::string> examples(records, std::string(example_bytes, 77));
  std::vector<char> batch(kGlobalBatch * example_bytes);
  const int64_t images = plan->order().steps_per_epoch() * kGlobalBatch;
  int64_t epoch = 1;
  for (auto _ : state) {
    const auto samples =
        TakeTurns({[&] { return RunEpoch(engine, plan, cache, epoch++); },
                   [&] {
                     return Measure(static_cast<double>(images), [&] {
                       for (size_t i = 0; i < static_cast<size_t>(images); ++i) {
                         std::memcpy(batch.data() + i % kGlobalBatch * example_bytes,
                                     examples[i * 61 % records].data(), example_bytes);
                         benchmark::DoNotOptimize(batch.data());
                       }
                     });
                   }});
    SYSTOLE_CHECK(cache->stats().misses <= Photographs()->num_records());
    ReportRow(
        state, "of_memcpy",
        {.figure = absl::StrCat("feed of ", rounds ? "rounded images" : "finished examples",
                                " in the cache to ", v1::DataType_Name(dtype), ", one thread"),
         .ceiling = "memcpy of the examples",
         .unit = "img/s",
         .wanted = 0.7},
        samples[0], samples[1]);
  }
}
BENCHMARK(BM_FinishedFeed)
    ->ArgNames({"dtype", "rounds"})
    ->Args({v1::FLOAT32, 0})
    ->Args({v1::FLOAT32, 1})
    ->Args({v1::BFLOAT16, 0})
    ->Args({v1::BFLOAT16, 1})
    ->Iterations(1)
    ->Unit(benchmark::kMillisecond);

void BM_CachedFeed(benchmark::State& state) {
  const std::shared_ptr<const FeedPlan> plan = RandomCrops();
  const int64_t all_bytes =
      Photographs()->num_records() * (int64_t{kPhotographHeight} * kPhotographWidth * 3 + 1024);
  StepEngine engine({.threads = 1});
  const auto filled = [&](int64_t bytes) -> std::shared_ptr<ValueCache> {
    absl::StatusOr<std::unique_ptr<ValueCache>> made = ValueCache::Create({.memory_bytes = bytes});
    SYSTOLE_CHECK(made.ok());
    std::shared_ptr<ValueCache> cache = *std::move(made);
    RunEpoch(engine, plan, cache, 0);
    return cache;
  };
  const std::shared_ptr<ValueCache> all = filled(all_bytes);
  const std::shared_ptr<ValueCache> tenth = filled(all_bytes / 10);
  int64_t epoch = 1;
  for (auto _ : state) {
    const auto samples = TakeTurns({[&] { return RunEpoch(engine, plan, nullptr, epoch++); },
                                    [&] { return RunEpoch(engine, plan, all, epoch++); },
                                    [&] { return RunEpoch(engine, plan, tenth, epoch++); }});
    ReportRow(state, "all_kept",
              {.figure = "feed of random crops, one thread, every image in the cache",
               .ceiling = "the same without a cache",
               .unit = "img/s"},
              samples[1], samples[0]);
    ReportRow(state, "tenth_kept",
              {.figure = "the same with room for a tenth of the images",
               .ceiling = "the same without a cache",
               .unit = "img/s",
               .wanted = 0.95},
              samples[2], samples[0]);
  }
}
BENCHMARK(BM_CachedFeed)->Iterations(1)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace systole::bench

int main(int argc, char** argv) { return systole::bench::RunBenchmarks(argc, argv); }
