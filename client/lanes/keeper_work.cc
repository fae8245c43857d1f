#include "client/lanes/keeper_work.h"

namespace systole {

bool KeeperWork::empty() const {
  return forgotten_links.empty() && ended_streams.empty() && ended_calls.empty() &&
         ended_reports.empty() && unused.empty() && cancel_reading.empty() &&
         cancel_paused.empty() && cancel_calls.empty() && cancel_reports.empty() &&
         start_calls.empty() && start_streams.empty() && start_reports.empty();
}

void KeeperWork::Do() {
  for (ResolveCall* call : start_calls) call->Start();
  for (const auto& [stream, link] : start_streams) stream->Start(*link);
  // Reports start after the streams, because a trainer may wait for the streams.
  for (const auto& [report, link] : start_reports) report->Start(*link);
  // Calls and streams that were just started may already be among those to cancel.
  for (ChunkStream* stream : cancel_reading) stream->Cancel(/*paused=*/false);
  for (ChunkStream* stream : cancel_paused) stream->Cancel(/*paused=*/true);
  for (ResolveCall* call : cancel_calls) call->Cancel();
  for (ReportCall* report : cancel_reports) report->Cancel();
}

}  // namespace systole
