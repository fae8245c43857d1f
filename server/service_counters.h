// What a server counts since its start. Streams write the counters, ServerStatus reports them.
//
// Thread-safe.
#ifndef SYSTOLE_SERVER_SERVICE_COUNTERS_H_
#define SYSTOLE_SERVER_SERVICE_COUNTERS_H_

#include <atomic>
#include <cstdint>

namespace systole {

struct ServiceCounters {
  std::atomic<int64_t> active_streams = 0;
  std::atomic<int64_t> steps_served = 0;
  std::atomic<int64_t> payload_bytes_sent = 0;
  std::atomic<int64_t> payload_bytes_shared = 0;  // Of payload_bytes_sent, through shared memory.
  std::atomic<bool> draining = false;
};

}  // namespace systole

#endif  // SYSTOLE_SERVER_SERVICE_COUNTERS_H_
