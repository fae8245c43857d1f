#include "client/feed/feed_lane.h"

#include <string>

#include "absl/strings/str_cat.h"

namespace systole {

v1::StreamStepsRequest FeedLane::Request(const v1::FeedSpec& spec, const v1::FeedIdentity& expected,
                                         const StepShape& shape, int64_t count,
                                         int64_t stride) const {
  v1::StreamStepsRequest request;
  *request.mutable_spec() = spec;
  request.set_first_step(step);
  request.set_count(count);
  request.set_stride(stride);
  request.set_core_begin(shape.core_begin);
  request.set_core_end(shape.core_end);
  *request.mutable_expected() = expected;
  return request;
}

absl::Status FeedLane::GaveUp(const LaneEnding& ending, absl::Span<const KnownServer> servers,
                              absl::Duration limit) const {
  const absl::Status status = servers[static_cast<size_t>(server)].Named(ending.status);
  switch (ending.kind) {
    case FailureKind::kLost:
      return Unreachable(
          absl::StrCat("no server has sent step ", step, " for ", absl::FormatDuration(limit)),
          servers);
    case FailureKind::kDamaged:
      return absl::DataLossError(absl::StrCat(
          status.message(), "; ", kMaxDamagedFailures,
          " attempts in a row were damaged: look for a bad network card or proxy on the way"));
    default:
      return status;
  }
}

std::optional<FeedWaiting> FeedLane::Waiting(absl::Span<const KnownServer> servers,
                                             const FeedClientOptions& options, absl::Duration now,
                                             bool started, int64_t next_step) const {
  FeedWaiting waiting = {.asking = servers[static_cast<size_t>(server)].link->address(),
                         .started = started};
  if (const std::optional<absl::Duration> since = retry.failing_since()) {
    const KnownServer& lost_server = servers[static_cast<size_t>(lost)];
    waiting.lost = lost_server.link->address();
    waiting.error = std::string(lost_server.last_error.message());
    waiting.waited = now - *since;
    waiting.limit = started ? options.retry_for : options.connect_timeout;
    return waiting;
  }
  const bool steps_wanted = stream != nullptr && !paused && step == next_step;
  if (call == nullptr && !steps_wanted) return std::nullopt;
  waiting.waited = now - heard_at;
  waiting.limit = call != nullptr ? options.connect_timeout : options.silence_timeout;
  return waiting;
}

std::unique_ptr<ResolveCall> FeedLane::TakeCall() {
  resolved.reset();
  cancelled = false;
  return std::move(call);
}

std::unique_ptr<ChunkStream> FeedLane::TakeStream() {
  ended.reset();
  reason.reset();
  cursor.reset();
  cancelled = false;
  changing = false;
  paused = false;
  held = false;
  return std::move(stream);
}

}  // namespace systole
