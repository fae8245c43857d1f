// What a decoded, resized and normalised training crop costs beside the bare libjpeg-turbo decode
// of the same crop (the ceiling: nobody who uses libjpeg can be faster). Compare in one process,
// interleaved:
//   image_bench --benchmark_enable_random_interleaving=true --benchmark_repetitions=9
// and divide the items_per_second medians. Images are photograph-like noise, 500x375, 4:2:0, about
// 90 kB.
#include <benchmark/benchmark.h>

#include <cstdint>
#include <cstdio>
#include <string>
#include <vector>

#include "bench/photographs.h"
#include "core/image/crop.h"
#include "core/image/image_transformer.h"
#include "core/numeric/simd_target.h"
#include "core/random/counter_rng.h"
// Last: needs <cstdio>.
#include "jpeglib.h"

namespace systole {
namespace {

constexpr int kWidth = bench::kPhotographWidth;
constexpr int kHeight = bench::kPhotographHeight;
constexpr int kImages = 64;

struct Sample {
  std::string jpeg;
  CropRect crop;
  bool flip;
};

const std::vector<Sample>& Samples() {
  static const std::vector<Sample>* samples = [] {
    auto* made = new std::vector<Sample>();
    for (int i = 0; i < kImages; ++i) {
      CounterRng rng(/*seed=*/7, /*epoch=*/0, /*record=*/i, /*purpose=*/1);
      const CropRect crop = RandomResizedCrop({}, kHeight, kWidth, rng);
      made->push_back({bench::MakePhotograph(i), crop, DrawFlip(rng)});
    }
    return made;
  }();
  return *samples;
}

void Report(benchmark::State& state) {
  size_t bytes = 0;
  for (const Sample& sample : Samples()) bytes += sample.jpeg.size();
  state.SetItemsProcessed(state.iterations() * kImages);
  state.counters["jpeg_bytes"] = static_cast<double>(bytes) / kImages;
}

// The bare library: no margin, no checks, rows overwritten one after the other.
void BM_DecodeCrop(benchmark::State& state) {
  jpeg_decompress_struct cinfo;
  jpeg_error_mgr error;
  cinfo.err = jpeg_std_error(&error);  // Its error_exit ends the program.
  jpeg_create_decompress(&cinfo);
  std::vector<uint8_t> row(kWidth * 3);
  JSAMPROW rows[1] = {row.data()};
  for (auto _ : state) {
    for (const Sample& sample : Samples()) {
      jpeg_mem_src(&cinfo, reinterpret_cast<const unsigned char*>(sample.jpeg.data()),
                   sample.jpeg.size());
      jpeg_read_header(&cinfo, TRUE);
      jpeg_start_decompress(&cinfo);
      JDIMENSION x = sample.crop.x;
      JDIMENSION width = sample.crop.width;
      jpeg_crop_scanline(&cinfo, &x, &width);
      jpeg_skip_scanlines(&cinfo, sample.crop.y);
      for (int y = 0; y < sample.crop.height; ++y) jpeg_read_scanlines(&cinfo, rows, 1);
      jpeg_abort_decompress(&cinfo);
      benchmark::DoNotOptimize(row.data());
    }
  }
  jpeg_destroy_decompress(&cinfo);
  Report(state);
}
BENCHMARK(BM_DecodeCrop)->Unit(benchmark::kMillisecond);

// Ours, to a 224x224x3 tensor.
void TransformAll(benchmark::State& state, PixelType type) {
  ImageTransformerOptions options;
  options.output = {.height = 224,
                    .width = 224,
                    .channels = 3,
                    .scale = {1 / 58.395f, 1 / 57.12f, 1 / 57.375f},
                    .bias = {-2.1179f, -2.0357f, -1.8044f},
                    .type = type};
  absl::StatusOr<ImageTransformer> transformer = ImageTransformer::Create(options);
  std::vector<uint8_t> out(transformer->output_bytes());
  for (auto _ : state) {
    for (const Sample& sample : Samples()) {
      absl::Status status = transformer->ReadHeader(sample.jpeg).status();
      if (status.ok()) {
        status = transformer->Transform(sample.crop, sample.flip, absl::MakeSpan(out));
      }
      if (!status.ok()) {
        state.SkipWithError(status.ToString().c_str());
        return;
      }
      benchmark::DoNotOptimize(out.data());
    }
  }
  Report(state);
}
void BM_DecodeCropResizeNormalise(benchmark::State& state) {
  TransformAll(state, PixelType::kBfloat16);
}
BENCHMARK(BM_DecodeCropResizeNormalise)->Unit(benchmark::kMillisecond);
void BM_DecodeCropResizeUint8(benchmark::State& state) { TransformAll(state, PixelType::kUint8); }
BENCHMARK(BM_DecodeCropResizeUint8)->Unit(benchmark::kMillisecond);

// The part after decoding alone.
void BM_ResizeNormalise(benchmark::State& state) {
  BilinearResizerOptions options = {.height = 224,
                                    .width = 224,
                                    .channels = 3,
                                    .scale = {1 / 58.395f, 1 / 57.12f, 1 / 57.375f},
                                    .bias = {-2.1179f, -2.0357f, -1.8044f},
                                    .type = PixelType::kBfloat16};
  absl::StatusOr<BilinearResizer> resizer = BilinearResizer::Create(options);
  std::vector<uint8_t> out(resizer->output_bytes());
  std::vector<uint8_t> row(kWidth * 3 + BilinearResizer::kRowPaddingBytes, 77);
  for (auto _ : state) {
    for (const Sample& sample : Samples()) {
      const CropRect& crop = sample.crop;
      if (!resizer->Start(crop.height, crop.width, sample.flip, absl::MakeSpan(out)).ok()) return;
      while (!resizer->done()) resizer->AddRow(row.data());
      benchmark::DoNotOptimize(out.data());
    }
  }
  state.SetItemsProcessed(state.iterations() * kImages);
}
BENCHMARK(BM_ResizeNormalise)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace systole

int main(int argc, char** argv) {
  const absl::Status forced = systole::ForceSimdTargetFromEnvironment();
  if (!forced.ok()) {
    std::fprintf(stderr, "image_bench: %s\n", forced.ToString().c_str());
    return 2;
  }
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 2;
  benchmark::AddCustomContext("simd_target", systole::CurrentSimdTarget());
  benchmark::RunSpecifiedBenchmarks();
  benchmark::Shutdown();
  return 0;
}
