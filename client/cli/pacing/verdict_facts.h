// What limits a feed (client/verdict), as facts of a report.
//
// Thread-safe: no state.
#ifndef SYSTOLE_CLIENT_CLI_PACING_VERDICT_FACTS_H_
#define SYSTOLE_CLIENT_CLI_PACING_VERDICT_FACTS_H_

#include <vector>

#include "client/emulator/report/run_report.h"
#include "client/verdict/feed_verdict.h"
#include "core/batch/slice_layout.h"
#include "systole/v1/feed.pb.h"

namespace systole {

// The verdict on a feed of this layout and spec.
std::vector<emulator::Fact> VerdictFacts(const FeedVerdict& verdict, const SliceLayout& layout,
                                         const v1::FeedSpec& spec);

}  // namespace systole

#endif  // SYSTOLE_CLIENT_CLI_PACING_VERDICT_FACTS_H_
