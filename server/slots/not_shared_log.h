// Logs why slices were sent as bytes to clients on this machine, instead of through shared memory.
// Logs each reason once.
//
// Thread-safe.
#ifndef SYSTOLE_SERVER_SLOTS_NOT_SHARED_LOG_H_
#define SYSTOLE_SERVER_SLOTS_NOT_SHARED_LOG_H_

#include <atomic>
#include <cstdint>

#include "core/log/event_log.h"
#include "systole/v1/slots.pb.h"

namespace systole {

class NotSharedLog {
 public:
  explicit NotSharedLog(EventLog& events) : events_(events) {}
  // NO_REASON is ignored.
  void Add(v1::NotShared reason);

 private:
  EventLog& events_;
  std::atomic<uint32_t> told_ = 0;  // A bit for each reason that was logged.
};

}  // namespace systole

#endif  // SYSTOLE_SERVER_SLOTS_NOT_SHARED_LOG_H_
