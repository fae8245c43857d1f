#include "bench/rounds.h"

#include <sys/resource.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "core/json/json_writer.h"
#include "core/numeric/simd_target.h"
#include "core/status/check.h"

namespace systole::bench {
namespace {

enum class Amount { kFull, kQuick, kSmoke };

Amount WantedAmount() {
  const char* text = std::getenv("SYSTOLE_BENCH");
  const absl::string_view wanted = text == nullptr ? "full" : text;
  if (wanted == "full") return Amount::kFull;
  if (wanted == "quick") return Amount::kQuick;
  if (wanted == "smoke") return Amount::kSmoke;
  std::fprintf(stderr, "SYSTOLE_BENCH is '%s', want full, quick or smoke\n", text);
  std::exit(2);
}

void Append(const JsonWriter& line) {
  const char* path = std::getenv("SYSTOLE_BENCH_RESULTS");
  if (path == nullptr) return;
  FILE* file = std::fopen(path, "a");
  SYSTOLE_CHECK(file != nullptr);
  std::fprintf(file, "%s\n", line.text().c_str());
  SYSTOLE_CHECK(std::fclose(file) == 0);
}

Ratio RatioOf(const std::vector<double>& figure, const std::vector<double>& ceiling) {
  SYSTOLE_CHECK(!figure.empty() && figure.size() == ceiling.size());
  std::vector<double> ratios;
  for (size_t round = 0; round < figure.size(); ++round) {
    ratios.push_back(figure[round] / ceiling[round]);
  }
  return {.median = Median(ratios),
          .min = *std::min_element(ratios.begin(), ratios.end()),
          .max = *std::max_element(ratios.begin(), ratios.end())};
}

std::vector<double> Rates(const std::vector<Sample>& samples) {
  std::vector<double> rates;
  for (const Sample& sample : samples) rates.push_back(sample.rate());
  return rates;
}

}  // namespace

int NumRounds() {
  switch (WantedAmount()) {
    case Amount::kFull:
      return 5;
    case Amount::kQuick:
      return 3;
    case Amount::kSmoke:
      return 1;
  }
  return 1;
}

int64_t ScaledWork(int64_t full) {
  switch (WantedAmount()) {
    case Amount::kFull:
      return full;
    case Amount::kQuick:
      return std::max<int64_t>(1, full / 4);
    case Amount::kSmoke:
      return std::max<int64_t>(1, full / 100);
  }
  return 1;
}

Sample Measure(double amount, const std::function<void()>& work) {
  const double cpu_before = ProcessCpuSeconds();
  const auto start = std::chrono::steady_clock::now();
  work();
  const std::chrono::duration<double> wall = std::chrono::steady_clock::now() - start;
  return {.amount = amount,
          .seconds = wall.count(),
          .cpu_seconds = ProcessCpuSeconds() - cpu_before,
          .peak_bytes = ProcessPeakBytes()};
}

std::vector<std::vector<Sample>> TakeTurns(const std::vector<Side>& sides) {
  std::vector<std::vector<Sample>> samples(sides.size());
  const int rounds = NumRounds();
  for (int round = 0; round < rounds; ++round) {
    for (size_t i = 0; i < sides.size(); ++i) {
      const size_t side = (i + static_cast<size_t>(round)) % sides.size();
      samples[side].push_back(sides[side]());
    }
  }
  return samples;
}

Ratio ReportRow(benchmark::State& state, const std::string& counter, const Row& row,
                const std::vector<Sample>& figure, const std::vector<Sample>& ceiling) {
  const std::vector<double> figure_rates = Rates(figure);
  const std::vector<double> ceiling_rates = Rates(ceiling);
  const Ratio ratio = RatioOf(figure_rates, ceiling_rates);
  state.counters[counter] = ratio.median;
  state.counters[counter + "_min"] = ratio.min;
  state.counters[counter + "_max"] = ratio.max;
  JsonWriter line;
  line.BeginObject()
      .Field("figure", row.figure)
      .Field("ceiling", row.ceiling)
      .Field("unit", row.unit)
      .Field("figure_value", Median(figure_rates) / row.unit_size)
      .Field("ceiling_value", Median(ceiling_rates) / row.unit_size)
      .Field("ratio", ratio.median)
      .Field("ratio_min", ratio.min)
      .Field("ratio_max", ratio.max)
      .Field("rounds", static_cast<int64_t>(figure.size()));
  if (row.wanted.has_value()) {
    line.Field("wanted", *row.wanted)
        .Field("bound", row.bound == Bound::kAtLeast ? "at least" : "at most");
  }
  if (row.valid_up_to.has_value()) line.Field("valid_up_to", *row.valid_up_to);
  std::vector<double> cpu;
  double peak = 0;
  for (const Sample& sample : figure) {
    cpu.push_back(sample.cpu_seconds / sample.amount * row.unit_size);
    peak = std::max(peak, sample.peak_bytes);
  }
  // The CPU time that the figure, without its ceiling, takes for one unit: one image, one GB, ..
  if (Median(cpu) > 0) line.Field("cpu_seconds_per_unit", Median(cpu));
  if (peak > 0) line.Field("peak_bytes", peak);
  line.EndObject();
  Append(line);
  return ratio;
}

void ReportNotMeasured(const std::string& figure, const std::string& reason) {
  JsonWriter line;
  line.BeginObject().Field("not_measured", figure).Field("reason", reason).EndObject();
  Append(line);
}

void ReportPoint(const Point& point) {
  JsonWriter line;
  line.BeginObject()
      .Field("curve", point.curve)
      .Field("series", point.series)
      .Field("x_label", point.x_label)
      .Field("x", point.x)
      .Field("y_label", point.y_label)
      .Field("y", point.y)
      .EndObject();
  Append(line);
}

double Median(std::vector<double> values) {
  SYSTOLE_CHECK(!values.empty());
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

int RunBenchmarks(int argc, char** argv) {
  const absl::Status forced = ForceSimdTargetFromEnvironment();
  if (!forced.ok()) {
    std::fprintf(stderr, "%s: %s\n", argv[0], forced.ToString().c_str());
    return 2;
  }
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 2;
  benchmark::AddCustomContext("simd_target", CurrentSimdTarget());
  benchmark::RunSpecifiedBenchmarks();
  benchmark::Shutdown();
  return 0;
}

double ProcessCpuSeconds() {
  rusage usage;
  SYSTOLE_CHECK(getrusage(RUSAGE_SELF, &usage) == 0);
  const auto seconds = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) * 1e-6;
  };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

double ProcessPeakBytes() {
  rusage usage;
  SYSTOLE_CHECK(getrusage(RUSAGE_SELF, &usage) == 0);
  return static_cast<double>(usage.ru_maxrss) * 1024;
}

}  // namespace systole::bench
