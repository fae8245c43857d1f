// Measures how fast a JPEG in memory becomes an output: its crop is decoded, resized, flipped,
// normalised and cast. The ceiling is libjpeg-turbo's bare decode of the same crop. A program that
// decodes with libjpeg cannot be faster. Systole can be faster, because it has its own decoder of
// Huffman codes.
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "bench/bare_decoder.h"
#include "bench/photographs.h"
#include "bench/rounds.h"
#include "benchmark/benchmark.h"
#include "core/image/image_transformer.h"
#include "core/image/paired_decoding.h"
#include "core/image/resize/bilinear_resizer.h"
#include "core/image/window/crop.h"
#include "core/process/allocator.h"
#include "core/random/counter_rng.h"
#include "core/status/check.h"

namespace systole::bench {
namespace {

constexpr int kImages = 64;

struct Example {
  std::string jpeg;
  CropRect crop;
  bool flip;
};

const std::vector<Example>& Examples() {
  static const std::vector<Example>* examples = [] {
    auto* made = new std::vector<Example>();
    for (int i = 0; i < kImages; ++i) {
      CounterRng rng(/*seed=*/7, /*epoch=*/0, /*record=*/i, /*purpose=*/1);
      const CropRect crop = RandomResizedCrop({}, kPhotographHeight, kPhotographWidth, rng);
      made->push_back({MakePhotograph(i), crop, DrawFlip(rng)});
    }
    return made;
  }();
  return *examples;
}

// Options for an output of 224x224x3.
BilinearResizerOptions OutputOf(PixelType type) {
  return {.height = 224,
          .width = 224,
          .channels = 3,
          .scale = {1 / 58.395f, 1 / 57.12f, 1 / 57.375f},
          .bias = {-2.1179f, -2.0357f, -1.8044f},
          .type = type};
}

// Passes all examples to `work`, two at a time. Does this ScaledWork(8) times.
template <typename Work>
Sample MeasureExamples(Work work) {
  const std::vector<Example>& examples = Examples();  // The first call makes them.
  const int64_t passes = ScaledWork(8);
  return Measure(static_cast<double>(passes * kImages), [&] {
    for (int64_t pass = 0; pass < passes; ++pass) {
      for (size_t i = 0; i < examples.size(); i += 2) work(examples[i], examples[i + 1]);
    }
  });
}
static_assert(kImages % 2 == 0);

void BM_TransformAgainstBareDecode(benchmark::State& state, PixelType type, const char* output) {
  struct Transformed {
    ImageTransformer transformer;
    std::vector<uint8_t> out = std::vector<uint8_t>(transformer.output_bytes());

    void Start(const Example& example) {
      SYSTOLE_CHECK(transformer.ReadHeader(example.jpeg).ok());
      SYSTOLE_CHECK(transformer.Start(example.crop, example.flip).ok());
    }
    void Finish() {
      SYSTOLE_CHECK(transformer.Finish(absl::MakeSpan(out)).ok());
      benchmark::DoNotOptimize(out.data());
    }
  };
  const auto make = [type] {
    absl::StatusOr<ImageTransformer> transformer =
        ImageTransformer::Create({.output = OutputOf(type)});
    SYSTOLE_CHECK(transformer.ok());
    return Transformed{*std::move(transformer)};
  };
  Transformed a = make();
  Transformed b = make();
  BareDecoder bare;
  const auto transform = [&](const Example& first, const Example& second) {
    a.Start(first);
    b.Start(second);
    PairedDecoding decoding;
    decoding.Add(0, a.transformer);
    decoding.Add(1, b.transformer);
    decoding.Advance();
    a.Finish();
    b.Finish();
  };
  const auto decode = [&](const Example& first, const Example& second) {
    bare.Decode(first.jpeg, first.crop);
    bare.Decode(second.jpeg, second.crop);
  };
  for (auto _ : state) {
    const auto samples = TakeTurns(
        {[&] { return MeasureExamples(transform); }, [&] { return MeasureExamples(decode); }});
    ReportRow(state, "of_bare_decode",
              {.figure = std::string("one thread: crop decoded, resized, flipped, to ") + output,
               .ceiling = "bare libjpeg-turbo, same crops",
               .unit = "img/s"},
              samples[0], samples[1]);
  }
}
BENCHMARK_CAPTURE(BM_TransformAgainstBareDecode, bf16, PixelType::kBfloat16, "bf16")
    ->Iterations(1)
    ->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(BM_TransformAgainstBareDecode, u8, PixelType::kUint8, "u8")
    ->Iterations(1)
    ->Unit(benchmark::kMillisecond);

// Measures how much faster decode_jpeg is with `scale: AUTO` than with `scale: FULL`, when
// photographs of 12 megapixels become 224 x 224 pixels.
void BM_DecodeScaled(benchmark::State& state) {
  constexpr int kWidth = 4000;
  constexpr int kHeight = 3000;
  constexpr int kLargeImages = 4;
  constexpr int kQuality = 90;  // Some 4 MB each, as cameras write them.
  std::vector<Example> examples;
  for (int i = 0; i < kLargeImages; ++i) {
    examples.push_back({MakePhotograph(i, kWidth, kHeight, kQuality), WholeImage(kHeight, kWidth),
                        /*flip=*/false});
  }
  std::vector<ImageTransformer> pair;
  const auto side = [&](bool scaled) {
    pair.clear();
    for (int i = 0; i < 2; ++i) {
      absl::StatusOr<ImageTransformer> transformer =
          ImageTransformer::Create({.output = OutputOf(PixelType::kBfloat16), .scaled = scaled});
      SYSTOLE_CHECK(transformer.ok());
      pair.push_back(*std::move(transformer));
    }
    std::vector<uint8_t> out(pair[0].output_bytes());
    const int64_t passes = ScaledWork(8);
    return Measure(static_cast<double>(passes * kLargeImages), [&] {
      for (int64_t i = 0; i < passes * kLargeImages; i += 2) {
        PairedDecoding decoding;
        for (int lane = 0; lane < 2; ++lane) {
          const Example& example = examples[static_cast<size_t>(i + lane) % kLargeImages];
          SYSTOLE_CHECK(pair[lane].ReadHeader(example.jpeg).ok());
          SYSTOLE_CHECK(pair[lane].Start(example.crop, example.flip).ok());
          decoding.Add(lane, pair[lane]);
        }
        decoding.Advance();
        for (ImageTransformer& transformer : pair) {
          SYSTOLE_CHECK(transformer.Finish(absl::MakeSpan(out)).ok());
          benchmark::DoNotOptimize(out.data());
        }
      }
    });
  };
  for (auto _ : state) {
    const auto samples = TakeTurns({[&] { return side(true); }, [&] { return side(false); }});
    ReportRow(state, "of_full_decode",
              {.figure = "one thread: 12 megapixels to 224 x 224, scale: AUTO",
               .ceiling = "scale: FULL, same images",
               .unit = "img/s",
               .wanted = 2.5},
              samples[0], samples[1]);
  }
}
BENCHMARK(BM_DecodeScaled)->Iterations(1)->Unit(benchmark::kMillisecond);

// Measures only the part after decoding.
void BM_ResizeNormalise(benchmark::State& state) {
  absl::StatusOr<BilinearResizer> resizer = BilinearResizer::Create(OutputOf(PixelType::kBfloat16));
  SYSTOLE_CHECK(resizer.ok());
  std::vector<uint8_t> out(resizer->output_bytes());
  std::vector<uint8_t> row(kPhotographWidth * 3 + BilinearResizer::kRowPaddingBytes, 77);
  for (auto _ : state) {
    for (const Example& example : Examples()) {
      const CropRect& crop = example.crop;
      SYSTOLE_CHECK(
          resizer->Start(crop.height, crop.width, example.flip, absl::MakeSpan(out)).ok());
      while (!resizer->done()) resizer->AddRow(row.data());
      benchmark::DoNotOptimize(out.data());
    }
  }
  state.SetItemsProcessed(state.iterations() * kImages);
}
BENCHMARK(BM_ResizeNormalise)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace systole::bench

int main(int argc, char** argv) {
  systole::KeepFreedMemory();  // As the server does.
  return systole::bench::RunBenchmarks(argc, argv);
}
