#include "client/cli/timing_output.h"

#include "client/emulator/report/run_report.h"
#include "client/emulator/report/timed_run.h"

namespace systole {

void AddCounted(const emulator::StepRecord& record, emulator::StepHistory& steps) {
  if (record.step > 0) steps.Add(emulator::EntryOf(record));
}

absl::Status PrintTimingReport(const emulator::TimingReport& timing,
                               const emulator::StepHistory& steps,
                               const std::optional<emulator::Program>& program,
                               const ReportFlags& flags, const Console& console) {
  emulator::RunReport report = emulator::ReportOf(timing, steps);
  if (program.has_value()) report.roofline = emulator::RooflineOf(*program);
  console.out << (console.json ? emulator::ToJson(report) + "\n" : timing.ToText());
  return flags.Write(report);
}

}  // namespace systole
