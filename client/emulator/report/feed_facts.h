// A report's facts about the feed: dataset, spec, servers and so on.
//
// Thread-safe: no state.
#ifndef SYSTOLE_CLIENT_EMULATOR_REPORT_FEED_FACTS_H_
#define SYSTOLE_CLIENT_EMULATOR_REPORT_FEED_FACTS_H_

#include <vector>

#include "client/emulator/report/run_report.h"
#include "client/emulator/timing/feed_origin.h"

namespace systole::emulator {

// The facts that `origin` has. Unknown facts are left out.
std::vector<Fact> FactsOf(const FeedOrigin& origin);

}  // namespace systole::emulator

#endif  // SYSTOLE_CLIENT_EMULATOR_REPORT_FEED_FACTS_H_
