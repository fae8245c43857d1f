// The report of a paced or a replayed run. Other reports use some of its parts, too.
//
// Thread-safe: no state.
#ifndef SYSTOLE_CLIENT_EMULATOR_REPORT_TIMED_RUN_H_
#define SYSTOLE_CLIENT_EMULATOR_REPORT_TIMED_RUN_H_

#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "client/emulator/chip/chip_program.h"
#include "client/emulator/report/run_report.h"
#include "client/emulator/report/step_history.h"
#include "client/emulator/timing/latency_histogram.h"
#include "client/emulator/timing/step_record.h"
#include "client/emulator/timing/timing_report.h"
#include "client/emulator/timing/utilisation.h"

namespace systole::emulator {

// The entry of a step. Its stall and barrier are means over the cores, so that they and the compute
// time add up to the time of the whole step.
StepEntry EntryOf(const StepRecord& record);

// The facts about the cores: how many there are, how long a step takes, and how large the slice of
// a core is.
std::vector<Fact> FactsOf(const TimedCores& cores);
// "<key>.p50" .. "<key>.max", labelled "<label>, p50".
std::vector<Fact> PercentileFacts(absl::string_view key, absl::string_view label,
                                  const LatencyHistogram& latencies);

// Whether the feed keeps up, and how much of the time is lost by waiting for it.
Verdict VerdictOf(const Utilisation& used);

// The layers of a compiled model, and the peaks of its chip, for a roofline plot.
Roofline RooflineOf(const ChipProgram& program);

// The report of a paced run if `timing` has the emulator's overhead, and of a replay if not.
// `steps` has all steps but the first.
RunReport ReportOf(const TimingReport& timing, const StepHistory& steps);

}  // namespace systole::emulator

#endif  // SYSTOLE_CLIENT_EMULATOR_REPORT_TIMED_RUN_H_
