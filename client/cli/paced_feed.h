// Paced cores on a feed from servers: what `pace` and each trainer of `load` run.
//
// Thread-safe: no state.
#ifndef SYSTOLE_CLIENT_CLI_PACED_FEED_H_
#define SYSTOLE_CLIENT_CLI_PACED_FEED_H_

#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "client/cli/core_queues.h"
#include "client/emulator/timing/paced_run.h"
#include "client/emulator/timing/slice_arrival.h"

namespace systole {

// Takes slices from `queues`, which it borrows, and drops them.
emulator::PopArrival ArrivalsOf(CoreQueues& queues);

// What to know of the numbers: that a server shares this machine, or that the emulator could not
// hold the pace.
std::vector<std::string> PacingNotes(const std::vector<std::string>& servers,
                                     const std::vector<emulator::PacedResult>& results);

}  // namespace systole

#endif  // SYSTOLE_CLIENT_CLI_PACED_FEED_H_
