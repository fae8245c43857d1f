// The results of `systole load` for all levels that it ran: as text, and as a report for the JSON
// and the page.
//
// The headline is "cores fed per server CPU". The number of cores is the number of examples that
// arrived per second, divided by the number of examples per second that one core of the chip takes.
// The headline is this number of cores, divided by the number of processors that the servers kept
// busy in the same time. The headline is taken from the largest level that was fed. If not even one
// trainer was fed, the headline is taken from the level with one trainer. In that case the headline
// shows what the servers gave, which was too little. The headline may be a fraction: 0.2 means that
// one core needs the work of five processors.
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
// steps ahead until their windows (--prefetch-bytes) are full. In a short run these steps are a
// large part of what arrives.
std::string WindowsText(const LoadLevel& level);

// The report for emulator::ToJson and ToHtml.
emulator::RunReport ReportOf(const LoadReport& load);

}  // namespace systole

#endif  // SYSTOLE_CLIENT_CLI_PACING_LOAD_REPORT_H_
