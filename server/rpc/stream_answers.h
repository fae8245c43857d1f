// Running streams as the messages of ServerStatus.
//
// Thread-safe: no state.
#ifndef SYSTOLE_SERVER_RPC_STREAM_ANSWERS_H_
#define SYSTOLE_SERVER_RPC_STREAM_ANSWERS_H_

#include "server/streams/stream_snapshot.h"
#include "systole/v1/service.pb.h"

namespace systole {

void AddStreams(const StreamSnapshots& snapshots, v1::ServerStatusResponse& response);

}  // namespace systole

#endif  // SYSTOLE_SERVER_RPC_STREAM_ANSWERS_H_
