#include "client/lanes/keeper_work.h"

namespace systole {

bool KeeperWork::empty() const {
  return forgotten_links.empty() && ended_streams.empty() && ended_calls.empty() &&
         unused.empty() && cancel_reading.empty() && cancel_paused.empty() &&
         cancel_calls.empty() && start_calls.empty() && start_streams.empty();
}

void KeeperWork::Do() {
  for (ResolveCall* call : start_calls) call->Start();
  for (const auto& [stream, link] : start_streams) stream->Start(*link);
  // Calls and streams that were just started may already be among those to cancel.
  for (ChunkStream* stream : cancel_reading) stream->Cancel(/*paused=*/false);
  for (ChunkStream* stream : cancel_paused) stream->Cancel(/*paused=*/true);
  for (ResolveCall* call : cancel_calls) call->Cancel();
}

}  // namespace systole
