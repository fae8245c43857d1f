// Writes the results of `pace` and `replay` to the console and to the files asked for.
//
// Thread-safe: no state.
#ifndef SYSTOLE_CLIENT_CLI_COMMANDS_TIMING_OUTPUT_H_
#define SYSTOLE_CLIENT_CLI_COMMANDS_TIMING_OUTPUT_H_

#include <optional>
#include <vector>

#include "absl/status/status.h"
#include "client/cli/commands/report_flags.h"
#include "client/cli/console/command_line.h"
#include "client/emulator/chip/chip_program.h"
#include "client/emulator/report/run_report.h"
#include "client/emulator/report/step_history.h"
#include "client/emulator/timing/feed_origin.h"
#include "client/emulator/timing/step_record.h"
#include "client/emulator/timing/timing_report.h"

namespace systole {

// Adds `record` to `steps`, unless it is the run's first step, which does not count.
void AddCounted(const emulator::StepRecord& record, emulator::StepHistory& steps);

// Writes text or JSON to the console, and the files of `flags`. `origin` describes the feed. The
// HTML page has a roofline if there is a `program`. `more_results` are further results of the run.
// Errors of ReportFlags::Write.
absl::Status PrintTimingReport(const emulator::FeedOrigin& origin,
                               const emulator::TimingReport& timing,
                               const emulator::StepHistory& steps,
                               const std::optional<emulator::ChipProgram>& program,
                               const std::vector<emulator::Fact>& more_results,
                               const ReportFlags& flags, const Console& console);

}  // namespace systole

#endif  // SYSTOLE_CLIENT_CLI_COMMANDS_TIMING_OUTPUT_H_
