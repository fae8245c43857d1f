// Logs and counts requests that are refused.
//
// Thread-safe.
#ifndef SYSTOLE_SERVER_STREAMS_REFUSAL_LOG_H_
#define SYSTOLE_SERVER_STREAMS_REFUSAL_LOG_H_

#include "absl/status/status.h"
#include "core/log/event_log.h"
#include "grpcpp/server_context.h"
#include "server/streams/service_counters.h"

namespace systole {

class RefusalLog {
 public:
  // Both must outlive this object.
  RefusalLog(EventLog& events, EndCauseCounters& refused) : events_(events), refused_(refused) {}

  // `status` is the error that the call of `method` ends with. Fills in the client of `about`.
  void Add(const grpc::CallbackServerContext& context, const char* method,
           const absl::Status& status, LogFields about);

 private:
  EventLog& events_;
  EndCauseCounters& refused_;
};

}  // namespace systole

#endif  // SYSTOLE_SERVER_STREAMS_REFUSAL_LOG_H_
