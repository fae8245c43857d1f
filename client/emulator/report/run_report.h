// Everything that the report of a run shows, in any mode, and the report's JSON. `--json` prints
// the JSON, and the page of html_report.h contains it.
//
// Thread-compatible value types.
#ifndef SYSTOLE_CLIENT_EMULATOR_REPORT_RUN_REPORT_H_
#define SYSTOLE_CLIENT_EMULATOR_REPORT_RUN_REPORT_H_

#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "absl/time/time.h"
#include "absl/types/span.h"
#include "client/emulator/chip/chip_program.h"
#include "client/emulator/report/step_history.h"
#include "client/emulator/report/unit.h"
#include "client/emulator/timing/latency_histogram.h"
#include "client/emulator/training/training_report.h"
#include "core/json/json_writer.h"

namespace systole::emulator {

enum class RunMode {
  // Computes the model's values. Times are those of the emulating host, so they say nothing about a
  // chip's utilization.
  kFunctional,
  // Measures times. On every core a step takes as long as on the chip, by the wall clock.
  kPaced,
  // Computes times for a chip from recorded arrivals of slices.
  kReplay,
  // Measures servers under load with paced runs of several trainers at once.
  kLoad,
};
const char* RunModeName(RunMode mode);  // "functional"

// A number or a text, with its name in the JSON.
struct Fact {
  std::string key;    // "steps"; or "infeed.average": the field "average" of the object "infeed".
  std::string label;  // "Steps"
  std::variant<std::string, int64_t, uint64_t, double> value;
  Unit unit = Unit::kNone;
  bool stands_out = false;  // Shown large.
};

// Writes the facts as fields of the JSON object that is open. The facts of an inner object are
// written together, at the place of the first of these facts. Keys must differ.
void AppendFacts(absl::Span<const Fact> facts, JsonWriter& json);

// The times of one core over the whole run, without its first step.
struct CoreTimes {
  absl::Duration infeed_stall;
  absl::Duration barrier;
};

// One layer on the roofline: what it computes, what it moves, how long it takes.
struct LayerPoint {
  std::string name;
  double flops = 0;
  double bytes = 0;  // To and from the chip's memory.
  double seconds = 0;
  Bound bound = Bound::kMatrix;

  double flops_per_byte() const { return bytes > 0 ? flops / bytes : 0; }
  double flops_per_second() const { return seconds > 0 ? flops / seconds : 0; }
};

struct Roofline {
  double peak_flops_per_second = 0;  // One core's.
  double bytes_per_second = 0;       // One core's share of the chip's memory bandwidth.
  std::vector<LayerPoint> layers;
};

// What a load test measured with a given number of trainers.
struct LevelReport {
  int64_t trainers = 0;
  bool fed = false;             // Each `au` and `wall_au` is at least kHighAu.
  std::vector<double> au;       // Each trainer's (utilisation.h). Here and below: NaN if not known.
  std::vector<double> wall_au;  // Each trainer's; the emulator's lost time counts, too.
  double lowest_au = 0;
  double lowest_wall_au = 0;
  absl::Duration window;  // The rates of arrived steps and examples are averages over this time.
  double steps_per_second = 0;
  double wanted_steps_per_second = 0;  // The trainers' rate if they never wait.
  double examples_per_second = 0;
  double cores_worth = 0;  // Cores that the arrived examples could have kept busy.
  double cores_busy = 0;   // Cores that computed, on average.
  int64_t retries = 0;
  // Sums over all servers.
  double server_cpu_seconds = 0;
  double server_cpus_busy = 0;
  int64_t server_cpus = 0;
  std::optional<int64_t> server_resident_bytes;
  double cores_fed_per_server_cpu = 0;
  LatencyHistogram waits;  // A wait for each step of each trainer but its first; open waits, too.
};

// The run's result in one line: "highly input-bound: waiting for data 36.0 % of the time".
struct Verdict {
  enum class Grade { kNeutral, kGood, kFair, kBad };
  std::string text;
  Grade grade = Grade::kNeutral;
};

// Sections that a mode does not have are empty. The JSON and the page leave them out.
struct RunReport {
  RunMode mode = RunMode::kFunctional;
  Verdict verdict;
  std::vector<Fact> facts;    // What ran: feed, model, chip, batch, numerics, versions.
  std::vector<Fact> results;  // What was measured.
  std::vector<EpochReport> epochs;
  StepHistory steps;
  std::vector<CoreTimes> cores;
  std::optional<Roofline> roofline;
  std::vector<LevelReport> levels;      // In the order they ran.
  std::vector<int64_t> masked_records;  // Load tests: the record_ids of masked records.
  std::vector<std::string> notes;       // Remarks that qualify the numbers; a sentence each.

  bool has_barrier() const { return mode != RunMode::kFunctional; }
  bool has_scores() const { return mode == RunMode::kFunctional; }
};

// The report as one object, on one line. Times are in seconds. Numbers that are not finite are
// null. The `facts` and `results` are fields of the object, or of its inner objects (Fact::key).
// The keys of these fields must differ from each other and from those of the sections ("mode",
// "verdict", "epochs", "infeed_stall_seconds", "barrier_seconds", "history", "roofline", "levels",
// "masked_records", "notes").
std::string ToJson(const RunReport& report);

}  // namespace systole::emulator

#endif  // SYSTOLE_CLIENT_EMULATOR_REPORT_RUN_REPORT_H_
