// Measures the stepped array's speed in array-cycles a second. In one array-cycle, every processing
// element (PE) takes one step.
#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "bench/rounds.h"
#include "benchmark/benchmark.h"
#include "client/emulator/array/stepped_array.h"
#include "core/numeric/bf16.h"

namespace systole::emulator {
namespace {

std::vector<uint16_t> Ramp(int64_t size) {
  std::vector<uint16_t> out(static_cast<size_t>(size));
  for (size_t i = 0; i < out.size(); ++i) {
    out[i] = RoundToBf16Flush(static_cast<float>(i % 251) / 256.0f - 0.5f);
  }
  return out;
}

// The rate that one CPU core should reach, in array-cycles a second. It is about a hundred times
// the rate of array simulators in Python.
constexpr double kTarget = 200'000;

// Measures a 128 x 128 array on a product of several tiles.
void BM_StepArray(benchmark::State& state) {
  const auto dataflow = static_cast<Dataflow>(state.range(0));
  const int64_t m = state.range(1), k = 512, n = 256;
  const std::vector<uint16_t> a = Ramp(m * k), b = Ramp(k * n);
  std::vector<float> out(static_cast<size_t>(m * n));
  SteppedArray array(128, 128);
  const auto multiply = [&] {
    const double cycles = static_cast<double>(
        array.Multiply(a.data(), b.data(), m, k, n, out.data(), dataflow).total());
    benchmark::DoNotOptimize(out.data());
    return cycles;
  };
  const double cycles_a_product = multiply();
  // This many products take about a tenth of a second.
  const int64_t count = std::max<int64_t>(
      1, static_cast<int64_t>(static_cast<double>(bench::ScaledWork(40'000)) / cycles_a_product));
  for (auto _ : state) {
    const auto samples = bench::TakeTurns(
        {[&] {
           return bench::Measure(cycles_a_product * static_cast<double>(count), [&] {
             for (int64_t i = 0; i < count; ++i) multiply();
           });
         },
         [] { return bench::Sample{.amount = kTarget, .seconds = 1}; }});
    bench::ReportRow(state, "times_target",
                     {.figure = absl::StrCat("emulator, 128x128 array stepped, ",
                                             DataflowName(dataflow), ", ", m, " rows"),
                      .ceiling = "a fixed rate",
                      .unit = "cycles/s",
                      .wanted = 1},
                     samples[0], samples[1]);
  }
}
// If the product has 128 rows, weights shift in every cycle. If it has 1024 rows, weights shift in
// one cycle of eight.
BENCHMARK(BM_StepArray)
    ->Iterations(1)
    ->ArgNames({"dataflow", "m"})
    ->ArgsProduct(
        {{static_cast<int64_t>(Dataflow::kWsDb), static_cast<int64_t>(Dataflow::kScaleSimWs),
          static_cast<int64_t>(Dataflow::kScaleSimIs), static_cast<int64_t>(Dataflow::kScaleSimOs)},
         {128, 1024}});

}  // namespace
}  // namespace systole::emulator
