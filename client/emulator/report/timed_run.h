// The report of a paced or a replayed run, and the parts of it that others print too.
//
// Thread-safe: no state.
#ifndef SYSTOLE_CLIENT_EMULATOR_REPORT_TIMED_RUN_H_
#define SYSTOLE_CLIENT_EMULATOR_REPORT_TIMED_RUN_H_

#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "client/emulator/chip/program.h"
#include "client/emulator/report/run_report.h"
#include "client/emulator/report/step_history.h"
#include "client/emulator/timing/latency_histogram.h"
#include "client/emulator/timing/step_record.h"
#include "client/emulator/timing/timing_report.h"
#include "client/emulator/timing/utilisation.h"

namespace systole::emulator {

// A step as the clock tells of it; its stall and barrier are means over the cores, so that they and
// the compute are the whole step.
StepEntry EntryOf(const StepRecord& record);

// What ran: cores, their step, their slice.
std::vector<Fact> FactsOf(const TimedCores& cores);
// "<key>.p50" .. "<key>.max", labelled "<label>, p50".
std::vector<Fact> PercentileFacts(absl::string_view key, absl::string_view label,
                                  const LatencyHistogram& latencies);

// Whether the feed keeps up, and how much of the time is lost to it.
Verdict VerdictOf(const Utilisation& used);

// A compiled model's layers under its chip's roof.
Roofline RooflineOf(const Program& program);

// Of a paced run if it has an emulator's overhead, else of a replayed one. `steps` are those that
// count: all but the first.
RunReport ReportOf(const TimingReport& timing, const StepHistory& steps);

}  // namespace systole::emulator

#endif  // SYSTOLE_CLIENT_EMULATOR_REPORT_TIMED_RUN_H_
