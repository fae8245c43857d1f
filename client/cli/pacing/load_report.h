// The results of `systole load`: as text, and as a report for the JSON and the page. `load` runs
// one or more levels. A level has a fixed number of trainers.
//
// The headline, "cores fed per server CPU", is the quotient of two numbers:
//   cores       the examples that arrived per second, divided by the examples per second that one
//               core of the chip takes
//   server CPU  the average number of processors that the servers kept busy in the same time
// For example, 0.2 means that one core needs the work of five processors. The headline is taken
// from the largest level that was fed. If not even one trainer was fed, the headline is taken from
// the level with one trainer.
//
// Thread-compatible value types.
#ifndef SYSTOLE_CLIENT_CLI_PACING_LOAD_REPORT_H_
#define SYSTOLE_CLIENT_CLI_PACING_LOAD_REPORT_H_

#include <optional>
#include <string>
#include <vector>

#include "client/cli/pacing/load_level.h"
#include "client/emulator/report/run_report.h"

namespace systole {

struct LoadReport {
  int most_trainers = 0;              // The largest number to try.
  bool ramp = false;                  // RampUp(), not LargestFed(), chose the numbers to try.
  int largest_fed = 0;                // The most trainers that were fed (LoadLevel::fed()), or 0.
  std::vector<LoadLevel> levels;      // In the order they ran; at least one.
  MissingTally missing;               // Over all levels.
  std::vector<emulator::Fact> facts;  // About the feed.
  std::vector<std::string> notes;

  // The level from which the headline is taken.
  const LoadLevel& headline_level() const;

  std::string ToText() const;
};

// A note if clearly more steps arrived than the trainers take; else empty. At first, clients fetch
// steps ahead until their windows (--prefetch-bytes) are full. In a short run these extra steps are
// a large part of the steps that arrive.
std::string WindowsText(const LoadLevel& level);

// The report for emulator::ToJson and ToHtml.
emulator::RunReport ReportOf(const LoadReport& load);

}  // namespace systole

#endif  // SYSTOLE_CLIENT_CLI_PACING_LOAD_REPORT_H_
