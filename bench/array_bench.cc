// The stepped array's speed: array-cycles a second, one of which moves every PE once.
#include <cstdint>
#include <string>
#include <vector>

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

// A 128 x 128 array on a product of several tiles. `times_target` is the rate over the 200,000
// array-cycles/s that we want of one core, about a hundred times what array simulators in Python
// do.
void BM_StepArray(benchmark::State& state) {
  constexpr double kTarget = 200'000;
  const auto dataflow = static_cast<Dataflow>(state.range(0));
  const int64_t m = state.range(1), k = 512, n = 256;
  const std::vector<uint16_t> a = Ramp(m * k), b = Ramp(k * n);
  std::vector<float> out(static_cast<size_t>(m * n));
  SteppedArray array(128, 128);
  double cycles = 0;
  for (auto _ : state) {
    cycles += static_cast<double>(
        array.Multiply(a.data(), b.data(), m, k, n, out.data(), dataflow).total());
    benchmark::DoNotOptimize(out.data());
  }
  state.SetLabel(std::string(DataflowName(dataflow)));
  state.counters["array_cycles/s"] = benchmark::Counter(cycles, benchmark::Counter::kIsRate);
  state.counters["times_target"] =
      benchmark::Counter(cycles / kTarget, benchmark::Counter::kIsRate);
}
// 128 rows: weights shift in every cycle. 1024: in one of eight.
BENCHMARK(BM_StepArray)
    ->ArgNames({"dataflow", "m"})
    ->ArgsProduct(
        {{static_cast<int64_t>(Dataflow::kWsDb), static_cast<int64_t>(Dataflow::kScaleSimWs),
          static_cast<int64_t>(Dataflow::kScaleSimIs), static_cast<int64_t>(Dataflow::kScaleSimOs)},
         {128, 1024}});

}  // namespace
}  // namespace systole::emulator
