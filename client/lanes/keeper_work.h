// The work that the keeper thread (feed_lanes.h) does for a FeedClient's schedule. This work calls
// gRPC, so the keeper releases the lock first.
//
// Thread-compatible.
#ifndef SYSTOLE_CLIENT_LANES_KEEPER_WORK_H_
#define SYSTOLE_CLIENT_LANES_KEEPER_WORK_H_

#include <memory>
#include <utility>
#include <vector>

#include "client/lanes/chunk_stream.h"
#include "client/servers/report_call.h"
#include "client/servers/server_link.h"
#include "client/step/step.h"

namespace systole {

struct KeeperWork {
  // Destroyed last, because streams and calls use links.
  std::vector<std::unique_ptr<ServerLink>> forgotten_links;
  std::vector<std::unique_ptr<ChunkStream>> ended_streams;
  std::vector<std::unique_ptr<ResolveCall>> ended_calls;
  std::vector<std::unique_ptr<ReportCall>> ended_reports;
  std::vector<StepBuffer> unused;
  std::vector<ChunkStream*> cancel_reading;
  std::vector<ChunkStream*> cancel_paused;
  std::vector<ResolveCall*> cancel_calls;
  std::vector<ReportCall*> cancel_reports;
  std::vector<ResolveCall*> start_calls;
  std::vector<std::pair<ChunkStream*, ServerLink*>> start_streams;
  std::vector<std::pair<ReportCall*, ServerLink*>> start_reports;

  bool empty() const;
  // Does all the work. The ended streams and calls are destroyed with this object. REQUIRES, here
  // and in the destructor: no lock is held that a ChunkListener or a call's callback takes.
  void Do();
};

}  // namespace systole

#endif  // SYSTOLE_CLIENT_LANES_KEEPER_WORK_H_
