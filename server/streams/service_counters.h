// What a server counts since its start. Streams write the counters, ServerStatus reports them.
//
// Thread-safe.
#ifndef SYSTOLE_SERVER_STREAMS_SERVICE_COUNTERS_H_
#define SYSTOLE_SERVER_STREAMS_SERVICE_COUNTERS_H_

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

#include "server/streams/end_cause.h"

namespace systole {

// A counter for each cause.
class EndCauseCounters {
 public:
  void Count(EndCause cause) { ++counts_[static_cast<size_t>(cause)]; }
  int64_t of(EndCause cause) const { return counts_[static_cast<size_t>(cause)]; }

 private:
  std::array<std::atomic<int64_t>, kNumEndCauses> counts_ = {};
};

struct ServiceCounters {
  std::atomic<int64_t> active_streams = 0;
  std::atomic<int64_t> streams_opened = 0;
  std::atomic<int64_t> steps_served = 0;
  std::atomic<int64_t> payload_bytes = 0;
  std::atomic<int64_t> shared_payload_bytes = 0;  // A part of payload_bytes.
  // How long streams waited until gRPC had taken what they sent, because HTTP/2's windows were
  // closed or the socket was full.
  std::atomic<double> send_seconds = 0;
  std::atomic<bool> draining = false;
  EndCauseCounters refused;  // Requests of all methods.
  EndCauseCounters ended;    // Streams. kNone: the stream sent all its steps.
};

}  // namespace systole

#endif  // SYSTOLE_SERVER_STREAMS_SERVICE_COUNTERS_H_
