// Runs paced cores on a feed from servers, for `pace` and for each trainer of `load`.
//
// Thread-safe: no state.
#ifndef SYSTOLE_CLIENT_CLI_PACING_PACED_FEED_H_
#define SYSTOLE_CLIENT_CLI_PACING_PACED_FEED_H_

#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "client/cli/pacing/core_queues.h"
#include "client/emulator/timing/paced_run.h"
#include "client/emulator/timing/slice_arrival.h"

namespace systole {

// Returns a function that takes slices from `queues` and drops them. The function borrows `queues`.
emulator::PopArrival ArrivalsOf(CoreQueues& queues);

// Remarks that qualify the numbers: a server shares this machine, or the emulator could not hold
// the pace.
std::vector<std::string> PacingNotes(const std::vector<std::string>& servers,
                                     const std::vector<emulator::PacedResult>& results);

}  // namespace systole

#endif  // SYSTOLE_CLIENT_CLI_PACING_PACED_FEED_H_
