// What `systole load` found, over all levels it ran, as text and as JSON.
//
// The headline is "cores fed per server CPU": (examples that arrived per second / the examples per
// second that one core of the chip takes) / processors that the servers kept busy meanwhile. It is
// of the largest level that was fed, or, if not even one trainer was, of one trainer: then it is
// what the servers gave though it was not enough. It may be a fraction: 0.2 says that a core takes
// five processors' work.
//
// Thread-compatible value types.
#ifndef SYSTOLE_CLIENT_CLI_LOAD_REPORT_H_
#define SYSTOLE_CLIENT_CLI_LOAD_REPORT_H_

#include <optional>
#include <string>
#include <vector>

#include "client/cli/load_level.h"

namespace systole {

struct LoadReport {
  int most_trainers = 0;          // Tried at most.
  int largest_fed = 0;            // With every trainer's AU at 90 % or more; 0: not even one.
  std::vector<LoadLevel> levels;  // In the order they ran; at least one.
  MissingTally missing;           // Over all levels.
  std::vector<std::string> notes;

  // The level that the headline is of.
  const LoadLevel& headline_level() const;

  std::string ToText() const;
  // One object, on one line.
  std::string ToJson() const;
};

}  // namespace systole

#endif  // SYSTOLE_CLIENT_CLI_LOAD_REPORT_H_
