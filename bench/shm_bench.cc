// Measures transport on one host: ready batches go out of a server's shared memory into the
// client's aligned memory. The ceiling is memcpy of the same bytes by one thread. Server and client
// run in one process here, but use descriptors, mappings and messages as two processes do.
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "bench/ready_feed.h"
#include "bench/ready_slots.h"
#include "bench/rounds.h"
#include "benchmark/benchmark.h"
#include "core/memory/aligned_buffer.h"
#include "core/process/allocator.h"

namespace systole::bench {
namespace {

constexpr int kNumCores = 8;

// The ceiling: one thread copies the ready steps, slice by slice, to two other places in turn.
Sample MeasureMemcpy(const ReadySteps& ready, int64_t steps, AlignedBuffer (&destination)[2]) {
  const int64_t slice_bytes = ready.layout.slice_bytes();
  return Measure(static_cast<double>(ready.bytes() * steps), [&] {
    for (int64_t step = 0; step < steps; ++step) {
      for (int core = 0; core < kNumCores; ++core) {
        std::memcpy(destination[step % 2].data() + core * slice_bytes, ready.slice(step, core),
                    static_cast<size_t>(slice_bytes));
      }
      benchmark::DoNotOptimize(destination[step % 2].data());
    }
  });
}

void BM_SharedMemoryAgainstMemcpy(benchmark::State& state) {
  const ReadySteps ready(/*global_batch=*/state.range(0), kNumCores);
  const int64_t steps = std::max<int64_t>(1, ScaledWork(int64_t{4} << 30) / ready.bytes());
  const std::string path =
      (std::filesystem::temp_directory_path() / absl::StrCat("systole-shm-", getpid())).string();
  const RunningSlotServer server(ready, absl::StrCat("unix:", path));
  AlignedBuffer destination[2] = {*AlignedBuffer::Create(ready.bytes()),
                                  *AlignedBuffer::Create(ready.bytes())};
  MeasureMemcpy(ready, 2, destination);  // Makes the pages of `destination` resident.
  for (auto _ : state) {
    const std::vector<std::vector<Sample>> samples =
        TakeTurns({[&] { return MeasureFeedClient(server.address(), ready, steps); },
                   [&] { return MeasureMemcpy(ready, steps, destination); }});
    ReportRow(state, "of_memcpy",
              {.figure = "same host: ready bf16 batches through shared memory",
               .ceiling = "memcpy of the same bytes",
               .unit = "GB/s",
               .unit_size = 1e9,
               .wanted = 0.80},
              samples[0], samples[1]);
  }
}
BENCHMARK(BM_SharedMemoryAgainstMemcpy)
    ->ArgName("global_batch")
    ->Arg(128)
    ->Iterations(1)
    ->Unit(benchmark::kMillisecond)
    ->UseRealTime();

}  // namespace
}  // namespace systole::bench

int main(int argc, char** argv) {
  systole::KeepFreedMemory();
  return systole::bench::RunBenchmarks(argc, argv);
}
