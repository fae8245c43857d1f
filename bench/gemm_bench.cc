// Measures the emulator's matrix unit on one core: the rate of multiply-adds in matrix products
// (packing of the operands included), as a share of the fused multiply-adds that the core can
// issue. Also compares the unit's numerics `fast` with direct calls of oneDNN.
#include <algorithm>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "bench/rounds.h"
#include "benchmark/benchmark.h"
#include "client/emulator/array/device_array.h"
#include "client/emulator/array/flush_scope.h"
#include "client/emulator/array/matrix_unit.h"
#include "client/emulator/array/onednn_gemm.h"
#include "core/numeric/bf16.h"
#include "dnnl.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "bench/gemm_bench.cc"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
//
#include "hwy/highway.h"

extern "C" void omp_set_num_threads(int threads);  // Of libgomp, which runs oneDNN's threads.

HWY_BEFORE_NAMESPACE();
namespace systole::emulator {
namespace HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

// Does `rounds` vector multiply-adds in each of kChains independent chains. kChains is large enough
// to hide the latency of a multiply-add. Returns the number of multiply-adds of single numbers.
// Writes the sums to `sink`, so that the compiler does not remove the multiply-adds.
int64_t MultiplyAdds(int64_t rounds, float* sink) {
  const hn::CappedTag<float, 16> d;
  using V = hn::Vec<decltype(d)>;
  constexpr int kChains = hn::MaxLanes(d) == 16 ? 16 : 12;
  V sum[kChains];
  for (int i = 0; i < kChains; ++i) sum[i] = hn::Set(d, static_cast<float>(i));
  const V a = hn::Set(d, 0.999f), b = hn::Set(d, 0.001f);
  for (int64_t round = 0; round < rounds; ++round) {
#pragma GCC unroll 16
    for (int i = 0; i < kChains; ++i) sum[i] = hn::MulAdd(sum[i], a, b);
  }
  for (int i = 0; i < kChains; ++i) hn::StoreU(sum[i], d, sink + i * hn::MaxLanes(d));
  return rounds * kChains * static_cast<int64_t>(hn::MaxLanes(d));
}

}  // namespace HWY_NAMESPACE
}  // namespace systole::emulator
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace systole::emulator {
namespace {

HWY_EXPORT(MultiplyAdds);

// Returns the fastest of some bursts, so that a short disturbance does not lower the ceiling.
bench::Sample MeasurePeak() {
  std::vector<float> sink(256);
  bench::Sample best;
  for (int64_t burst = 0; burst < bench::ScaledWork(20); ++burst) {
    int64_t macs = 0;
    bench::Sample sample = bench::Measure(1, [&] {
      macs = HWY_DYNAMIC_DISPATCH(MultiplyAdds)(1 << 20, sink.data());
      benchmark::DoNotOptimize(sink.data());
    });
    sample.amount = static_cast<double>(macs);
    if (burst == 0 || sample.rate() > best.rate()) best = sample;
  }
  return best;
}

// Calls `multiply`, a product of `macs` multiply-adds, as often as takes about a tenth of a second.
bench::Sample MeasureProducts(int64_t macs, const std::function<void()>& multiply) {
  const int64_t count = std::max<int64_t>(1, bench::ScaledWork(int64_t{8} << 30) / macs);
  return bench::Measure(static_cast<double>(macs * count), [&] {
    for (int64_t i = 0; i < count; ++i) multiply();
  });
}

constexpr char kUnit[] = "GMAC/s";

// `fast` may exceed the ceiling, because an instruction for bf16 does more multiply-adds than one
// for f32.
void ReportOfPeak(benchmark::State& state, Numerics numerics, const std::string& shape,
                  std::optional<double> wanted, int64_t macs,
                  const std::function<void()>& multiply) {
  const bool exact = numerics == Numerics::kExact;
  bench::Row row = {.figure = absl::StrCat("emulator, `", exact ? "exact" : "fast", "` ", shape),
                    .ceiling = "f32 multiply-adds that one core can issue",
                    .unit = kUnit,
                    .unit_size = 1e9,
                    .wanted = wanted};
  if (exact) row.valid_up_to = 1;
  multiply();  // The first product also allocates memory.
  for (auto _ : state) {
    const auto samples =
        bench::TakeTurns({[&] { return MeasureProducts(macs, multiply); }, MeasurePeak});
    bench::ReportRow(state, "of_peak", row, samples[0], samples[1]);
  }
}

DeviceArray<uint16_t> Ramp(int64_t size) {
  DeviceArray<uint16_t> out(size);
  for (int64_t i = 0; i < size; ++i) {
    out[i] = RoundToBf16Flush(static_cast<float>(i % 251) / 256.0f - 0.5f);
  }
  return out;
}

void BM_Multiply(benchmark::State& state, Numerics numerics) {
  const FlushScope flush;
  const int64_t m = state.range(0), k = state.range(1), n = state.range(2);
  const DeviceArray<uint16_t> a = Ramp(m * k), b = Ramp(k * n);
  std::vector<float> out(static_cast<size_t>(m * n));
  MatrixUnit<float> unit(numerics);
  const bool yardstick = numerics == Numerics::kExact && m == 1024;
  ReportOfPeak(state, numerics, absl::StrCat("GEMM ", m, "x", k, "x", n),
               yardstick ? std::optional<double>(0.6) : std::nullopt, m * k * n, [&] {
                 unit.Multiply(PatchMatrix<uint16_t>::Dense(a.data(), m, k), b.data(), n,
                               out.data(), n);
                 benchmark::DoNotOptimize(out.data());
               });
}
// The first product is square. The others are the forward products of convolutions, for 8 images of
// 64x64 or 32x32 pixels.
void MultiplyShapes(benchmark::internal::Benchmark* benchmark) {
  benchmark->Iterations(1)
      ->ArgNames({"m", "k", "n"})
      ->Args({1024, 1024, 1024})
      ->Args({32768, 27, 16})
      ->Args({8192, 144, 32})
      ->Args({8192, 288, 64});
}
BENCHMARK_CAPTURE(BM_Multiply, exact, Numerics::kExact)->Apply(MultiplyShapes);
BENCHMARK_CAPTURE(BM_Multiply, fast, Numerics::kFast)->Apply(MultiplyShapes);

// The product for the gradient of a convolution's weights: the patches of 8 images times the
// gradient of the convolution's output.
void BM_MultiplyTransposed(benchmark::State& state, Numerics numerics) {
  const FlushScope flush;
  const int64_t images = 8, edge = state.range(0), channels = state.range(1), n = state.range(2);
  const DeviceArray<uint16_t> pixels = Ramp(images * (edge + 2) * (edge + 2) * channels);
  const DeviceArray<uint16_t> gradient = Ramp(images * edge * edge * n);
  const PatchMatrix<uint16_t> patches = {.data = pixels.data(),
                                         .images = images,
                                         .height = edge,
                                         .width = edge,
                                         .image_stride = (edge + 2) * (edge + 2) * channels,
                                         .y_stride = (edge + 2) * channels,
                                         .x_stride = channels,
                                         .runs = 3,
                                         .run_length = 3 * channels,
                                         .run_stride = (edge + 2) * channels};
  std::vector<float> out(static_cast<size_t>(patches.columns() * n));
  MatrixUnit<float> unit(numerics);
  ReportOfPeak(
      state, numerics, absl::StrCat("weight gradient ", edge, "x", edge, "x", channels, " to ", n),
      std::nullopt, patches.rows() * patches.columns() * n, [&] {
        unit.MultiplyTransposed(PatchMatrix<uint16_t>::Dense(gradient.data(), patches.rows(), n),
                                patches, out.data(), patches.columns());
        benchmark::DoNotOptimize(out.data());
      });
}
void TransposedShapes(benchmark::internal::Benchmark* benchmark) {
  benchmark->Iterations(1)
      ->ArgNames({"edge", "channels", "n"})
      ->Args({64, 3, 16})
      ->Args({32, 16, 32})
      ->Args({16, 32, 64});
}
BENCHMARK_CAPTURE(BM_MultiplyTransposed, exact, Numerics::kExact)->Apply(TransposedShapes);
BENCHMARK_CAPTURE(BM_MultiplyTransposed, fast, Numerics::kFast)->Apply(TransposedShapes);

// oneDNN's product of two dense bf16 matrices, called as oneDNN's manual says. The constructor lets
// oneDNN plan the product and choose how the operands lie in memory. The matrix unit has no such
// choice.
class BareProduct {
 public:
  BareProduct(int64_t m, int64_t k, int64_t n)
      : plan_(Plan({{m, k}, dnnl::memory::data_type::bf16, dnnl::memory::format_tag::any},
                   {{k, n}, dnnl::memory::data_type::bf16, dnnl::memory::format_tag::any},
                   {{m, n}, dnnl::memory::data_type::f32, dnnl::memory::format_tag::ab})),
        a_(plan_.src_desc(), engine_),
        b_(plan_.weights_desc(), engine_),
        out_(plan_.dst_desc(), engine_) {
    // All elements are 1.0 (0x3f80), because some numbers, such as subnormal ones, are slow to
    // multiply.
    for (dnnl::memory* operand : {&a_, &b_}) {
      std::fill_n(static_cast<uint16_t*>(operand->get_data_handle()),
                  operand->get_desc().get_size() / sizeof(uint16_t), uint16_t{0x3f80});
    }
  }
  void Multiply() {
    matmul_.execute(stream_, {{DNNL_ARG_SRC, a_}, {DNNL_ARG_WEIGHTS, b_}, {DNNL_ARG_DST, out_}});
    stream_.wait();
  }

 private:
  dnnl::matmul::primitive_desc Plan(const dnnl::memory::desc& a, const dnnl::memory::desc& b,
                                    const dnnl::memory::desc& out) const {
#if DNNL_VERSION_MAJOR < 3
    return {{a, b, out}, engine_};
#else
    return {engine_, a, b, out};
#endif
  }

  dnnl::engine engine_{dnnl::engine::kind::cpu, 0};
  dnnl::stream stream_{engine_};
  dnnl::matmul::primitive_desc plan_;
  dnnl::matmul matmul_{plan_};
  dnnl::memory a_, b_, out_;
};

void BM_FastAgainstOneDnn(benchmark::State& state) {
  const FlushScope flush;
  const int64_t size = state.range(0), macs = size * size * size;
  const DeviceArray<uint16_t> a = Ramp(size * size), b = Ramp(size * size);
  DeviceArray<float> out(size * size);
  MatrixUnit<float> unit(Numerics::kFast);
  omp_set_num_threads(1);  // Both sides use one thread.
  BareProduct bare(size, size, size);
  const auto fast = [&] {
    unit.Multiply(PatchMatrix<uint16_t>::Dense(a.data(), size, size), b.data(), size, out.data(),
                  size);
  };
  fast();
  bare.Multiply();
  for (auto _ : state) {
    const auto samples =
        bench::TakeTurns({[&] { return MeasureProducts(macs, fast); },
                          [&] { return MeasureProducts(macs, [&] { bare.Multiply(); }); }});
    bench::ReportRow(state, "of_onednn",
                     {.figure = absl::StrCat("emulator, `fast` GEMM ", size, "x", size, "x", size),
                      .ceiling = "oneDNN, called bare",
                      .unit = kUnit,
                      .unit_size = 1e9,
                      .wanted = 0.8},
                     samples[0], samples[1]);
  }
}
// A CPU without bf16 products has no `fast`: the unit runs `exact` instead. Then this benchmark is
// left out.
[[maybe_unused]] benchmark::internal::Benchmark* const fast_against_onednn =
    OneDnnGemm::IsSupported()
        ? benchmark::RegisterBenchmark("BM_FastAgainstOneDnn", BM_FastAgainstOneDnn)
              ->ArgName("m=k=n")
              ->Arg(1024)
              ->Iterations(1)
        : nullptr;

}  // namespace
}  // namespace systole::emulator

#endif  // HWY_ONCE
