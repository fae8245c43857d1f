// A lane of a FeedClient. It takes every K-th step, from one server at a time.
//
//   idle -> resolving (is the server's data the same?) -> streaming -> idle ..
//
// Thread-compatible.
#ifndef SYSTOLE_CLIENT_FEED_FEED_LANE_H_
#define SYSTOLE_CLIENT_FEED_FEED_LANE_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <utility>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "client/feed/chunk_stream.h"
#include "client/feed/feed_client_options.h"
#include "client/feed/feed_watch.h"
#include "client/feed/known_server.h"
#include "client/feed/lane_cursor.h"
#include "client/feed/lane_retry.h"
#include "client/feed/server_link.h"
#include "client/feed/step.h"
#include "client/feed/wire_chooser.h"
#include "systole/v1/feed.pb.h"
#include "systole/v1/service.pb.h"

namespace systole {

// How a stream or a question ended.
struct LaneEnding {
  FailureKind kind;
  absl::Status status;
};

struct FeedLane {
  FeedLane(int64_t first_step, int home, const LaneRetryOptions& retry_options)
      : step(first_step), home(home), server(home), retry(retry_options) {}

  int64_t step;    // The first one that is not complete.
  const int home;  // The server it prefers.
  int server;      // The one it uses.
  int lost = 0;    // While `retry` is failing: the server that was lost first.
  LaneRetry retry;
  WireChooser wire;
  absl::Duration not_before = absl::ZeroDuration();

  // Set while resolving. `resolved` is set once the call's callback has run.
  std::unique_ptr<ResolveCall> call;
  bool asks_for_compact = false;  // Whether the call is about the compact form.
  std::optional<absl::Status> resolved;

  // Set while streaming. `ended` is set once OnStreamEnd() was called.
  std::unique_ptr<ChunkStream> stream;
  std::optional<LaneCursor> cursor;
  bool compact = false;    // Whether the compact form was asked for.
  bool changing = false;   // We stopped it, to go on in the other form.
  bool paused = false;     // Asks for no chunk, waits for room in the window.
  bool held = false;       // Was paused in the step under way.
  bool cancelled = false;  // By the keeper.
  absl::Duration heard_at = absl::ZeroDuration();
  std::optional<LaneEnding> reason;  // Found by us; takes precedence over gRPC's status.
  std::optional<absl::Status> ended;

  bool idle() const { return call == nullptr && stream == nullptr; }
  // Notes why the lane ends its stream; returns the verdict that ends it.
  ReadVerdict Stop(FailureKind kind, absl::Status status) {
    reason = {kind, std::move(status)};
    return ReadVerdict::kStop;
  }
  // The request to send: `count` steps from `step` on, each `stride` behind the one before.
  v1::StreamStepsRequest Request(const v1::FeedSpec& spec, const v1::FeedIdentity& expected,
                                 const StepShape& shape, int64_t count, int64_t stride) const;
  // The status that ends the feed once `retry` gives up. `limit` is how long it has tried.
  absl::Status GaveUp(const LaneEnding& ending, absl::Span<const KnownServer> servers,
                      absl::Duration limit) const;
  // What the lane waits for; nullopt if it delays nobody. `started`: the feed has received a step
  // before. `next_step`: the step that the trainer takes next.
  std::optional<FeedWaiting> Waiting(absl::Span<const KnownServer> servers,
                                     const FeedClientOptions& options, absl::Duration now,
                                     bool started, int64_t next_step) const;
  // Makes the lane idle again. Returns what it had, for the caller to destroy.
  std::unique_ptr<ResolveCall> TakeCall();
  std::unique_ptr<ChunkStream> TakeStream();
};

}  // namespace systole

#endif  // SYSTOLE_CLIENT_FEED_FEED_LANE_H_
