// A lane of a feed: its stream, and the step that the stream is bringing. client/schedule keeps the
// lane's place in the schedule.
//
// Thread-compatible.
#ifndef SYSTOLE_CLIENT_LANES_FEED_LANE_H_
#define SYSTOLE_CLIENT_LANES_FEED_LANE_H_

#include <memory>
#include <optional>
#include <utility>

#include "absl/status/status.h"
#include "client/lanes/chunk_stream.h"
#include "client/lanes/lane_cursor.h"
#include "client/schedule/failure.h"
#include "client/step/step.h"
#include "client/verdict/step_spans.h"

namespace systole {

// How a stream ended.
struct LaneEnding {
  Failure failure;
  absl::Status status;
};

struct FeedLane {
  int server = -1;

  // Set while the lane streams. `ended` is set once OnStreamEnd() was called.
  std::unique_ptr<ChunkStream> stream;
  std::optional<LaneCursor> cursor;
  bool compact = false;   // Tensors come in their v1::CompactForm, if they have one.
  bool retries = false;   // The lane's last stream has failed, and no step came since.
  bool stopping = false;  // The schedule wants the stream to end.
  // The memory of the step that is coming in. If the stream breaks, the next stream uses this
  // memory.
  StepBuffer buffer;
  StepSpans spans;                   // Of the step that is coming in.
  std::optional<LaneEnding> reason;  // Why the client ends the stream. Takes precedence over gRPC's
                                     // status.
  std::optional<StreamEnd> ended;

  // Notes why the lane ends its stream; returns the verdict that ends it.
  ReadVerdict Stop(FailureKind kind, absl::Status status) {
    reason = {.failure = {.kind = kind}, .status = std::move(status)};
    return ReadVerdict::kStop;
  }
  // Why the stream ended; nullopt: all its steps had come.
  std::optional<LaneEnding> Ending() const;
  // Makes the lane idle again. Returns its stream, for the caller to destroy.
  std::unique_ptr<ChunkStream> TakeStream();
};

}  // namespace systole

#endif  // SYSTOLE_CLIENT_LANES_FEED_LANE_H_
