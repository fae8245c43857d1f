// Compares a measured figure with its ceiling, the best that the machine allows. Every round
// measures the figure once and the ceiling once, and divides the first by the second. So a machine
// whose speed drifts from round to round does not spoil the ratio.
//
// The amount of work comes from the environment (bench/run.sh sets it):
//   SYSTOLE_BENCH          full (default), quick (3 rounds, a quarter of the work) or
//                          smoke (1 round of hardly any work, to show that the program runs)
//   SYSTOLE_BENCH_RESULTS  a file to which every row and point is appended, one JSON object a line;
//                          bench/table.py makes the table and the plots from it
//
// Single-thread.
#ifndef SYSTOLE_BENCH_ROUNDS_H_
#define SYSTOLE_BENCH_ROUNDS_H_

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "benchmark/benchmark.h"

namespace systole::bench {

// What one side, the figure or the ceiling, did in one round. If the figure is not a rate, such as
// the seconds to a first batch or bytes of memory, `amount` is the figure and `seconds` is 1.
struct Sample {
  // The work done in `seconds`: in images, bytes, ..
  double amount = 0;
  double seconds = 0;
  // User and system time of all processes of this side; 0 = not measured.
  double cpu_seconds = 0;
  // The peak memory of this side's processes, summed, in bytes; 0 = not measured.
  double peak_bytes = 0;

  double rate() const { return amount / seconds; }
};

// Measures one side once.
using Side = std::function<Sample()>;

// How many rounds to run: 5 (full), 3 (quick) or 1 (smoke).
int NumRounds();
// `full` scaled to the amount of work that SYSTOLE_BENCH sets, at least 1.
int64_t ScaledWork(int64_t full);

// Calls `work`, which does `amount` of work. Returns how long the call took, how much CPU time this
// process used for it, and this process's peak memory so far.
Sample Measure(double amount, const std::function<void()>& work);

// Runs NumRounds() rounds. In each round every side is measured once. The order of the sides
// rotates from round to round. Returns samples as [side][round].
std::vector<std::vector<Sample>> TakeTurns(const std::vector<Side>& sides);

enum class Bound { kAtLeast, kAtMost };

// A line of the table. Its ratio is `figure` divided by `ceiling`, and should be at least (or at
// most) `wanted`.
struct Row {
  std::string figure;
  std::string ceiling;
  // The unit of both rates: "img/s", "GB/s", ..
  std::string unit;
  // Rates are divided by this for printing: 1e9 for bytes shown as GB/s.
  double unit_size = 1;
  std::optional<double> wanted;
  Bound bound = Bound::kAtLeast;
  // The highest plausible ratio. If the median is larger, the ceiling was measured badly.
  std::optional<double> valid_up_to;
};

// Each round has a ratio: the figure's rate divided by the ceiling's rate. This is the median, the
// smallest and the largest of these ratios.
struct Ratio {
  double median = 0;
  double min = 0;
  double max = 0;
};

// Appends the row to the results. Sets the counters NAME, NAME_min and NAME_max of `state`, where
// NAME is `counter`.
Ratio ReportRow(benchmark::State& state, const std::string& counter, const Row& row,
                const std::vector<Sample>& figure, const std::vector<Sample>& ceiling);

// Says in the results that `figure` cannot be measured on this machine, and why. Do not call it for
// a benchmark that fails.
void ReportNotMeasured(const std::string& figure, const std::string& reason);

// A point of a curve; points of one curve and series are joined in order of x.
struct Point {
  std::string curve;   // The plot's title.
  std::string series;  // The line's name.
  std::string x_label;
  double x = 0;
  std::string y_label;
  double y = 0;
};
void ReportPoint(const Point& point);

// The median of `values`, which must not be empty.
double Median(std::vector<double> values);

// For main(): runs this program's benchmarks. The command line has Google Benchmark's flags. If
// SYSTOLE_SIMD_TARGET (core/numeric/simd_target.h) is set, the vectorised code runs on that target.
// Returns the exit code: 0, or 2 for a wrong flag or target.
int RunBenchmarks(int argc, char** argv);

// CPU seconds of this process, user and system.
double ProcessCpuSeconds();
// The largest resident set of this process so far, in bytes.
double ProcessPeakBytes();

}  // namespace systole::bench

#endif  // SYSTOLE_BENCH_ROUNDS_H_
