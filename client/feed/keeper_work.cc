#include "client/feed/keeper_work.h"

namespace systole {

bool KeeperWork::empty() const {
  return ended_streams.empty() && ended_calls.empty() && cancel_reading.empty() &&
         cancel_paused.empty() && cancel_calls.empty() && start_calls.empty() &&
         start_streams.empty();
}

void KeeperWork::Do() {
  for (ChunkStream* stream : cancel_reading) stream->Cancel(/*paused=*/false);
  for (ChunkStream* stream : cancel_paused) stream->Cancel(/*paused=*/true);
  for (ResolveCall* call : cancel_calls) call->Cancel();
  for (ResolveCall* call : start_calls) call->Start();
  for (const auto& [stream, link] : start_streams) stream->Start(*link);
}

}  // namespace systole
