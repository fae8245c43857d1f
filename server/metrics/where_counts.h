// Counts of the feeds with a `where` that a server makes (server/rpc/feed_makers.h).
//
// Thread-compatible: values.
#ifndef SYSTOLE_SERVER_METRICS_WHERE_COUNTS_H_
#define SYSTOLE_SERVER_METRICS_WHERE_COUNTS_H_

#include <cstdint>

namespace systole {

struct WhereCounts {
  int64_t waiting = 0;  // Requests that wait now.
  int64_t made = 0;     // Feeds that were made since the server's start.
  int64_t failed = 0;   // Feeds that could not be made, or were given up.
};

}  // namespace systole

#endif  // SYSTOLE_SERVER_METRICS_WHERE_COUNTS_H_
