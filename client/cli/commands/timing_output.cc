#include "client/cli/commands/timing_output.h"

#include <string>
#include <vector>

#include "client/emulator/report/feed_facts.h"
#include "client/emulator/report/run_report.h"
#include "client/emulator/report/timed_run.h"

namespace systole {

void AddCounted(const emulator::StepRecord& record, emulator::StepHistory& steps) {
  if (record.step > 0) steps.Add(emulator::EntryOf(record));
}

absl::Status PrintTimingReport(const emulator::FeedOrigin& origin,
                               const emulator::TimingReport& timing,
                               const emulator::StepHistory& steps,
                               const std::optional<emulator::ChipProgram>& program,
                               const std::vector<emulator::Fact>& more_results,
                               const ReportFlags& flags, const Console& console) {
  emulator::RunReport report = emulator::ReportOf(timing, steps);
  std::vector<emulator::Fact> feed = emulator::FactsOf(origin);
  feed.push_back({"systole_version", "Systole", std::string(console.version)});
  report.facts.insert(report.facts.begin(), feed.begin(), feed.end());
  report.results.insert(report.results.end(), more_results.begin(), more_results.end());
  if (program.has_value()) report.roofline = emulator::RooflineOf(*program);
  console.out << (console.json ? emulator::ToJson(report) + "\n" : timing.ToText());
  return flags.Write(report);
}

}  // namespace systole
