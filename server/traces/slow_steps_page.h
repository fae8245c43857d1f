// Slow steps as a page for people, which needs no scripts, and as JSON.
//
// Thread-safe: no state.
#ifndef SYSTOLE_SERVER_TRACES_SLOW_STEPS_PAGE_H_
#define SYSTOLE_SERVER_TRACES_SLOW_STEPS_PAGE_H_

#include <string>

#include "server/traces/slow_steps.h"

namespace systole {

std::string SlowStepsHtml(const SlowStepLists& lists);

// {"slowest_made":[STEP,..],"slowest_sent":[STEP,..]} where STEP is
//   {"ended":"2026-01-31T23:59:59.123Z","dataset":"flowers","step":7,"core_begin":0,"core_end":8,
//    "slowest_core":3,"read_seconds":0.5,"make_seconds":0.1,"wait_seconds":0,"send_seconds":0.02,
//    "trace":"4bf92f3577b34da6a3ce929d0e0e4736"}
// "trace" is left out if the step belongs to no trace.
std::string SlowStepsJson(const SlowStepLists& lists);

}  // namespace systole

#endif  // SYSTOLE_SERVER_TRACES_SLOW_STEPS_PAGE_H_
