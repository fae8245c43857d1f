// A lane of a feed: its stream, and the step that is under way on it. Its place in the schedule is
// kept in client/schedule.
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

namespace systole {

// How a stream or a question ended.
struct LaneEnding {
  Failure failure;
  absl::Status status;
};

struct FeedLane {
  int server = -1;

  // Set while the lane streams. `ended` is set once OnStreamEnd() was called.
  std::unique_ptr<ChunkStream> stream;
  std::optional<LaneCursor> cursor;
  bool compact = false;   // Tensors that have a compact form come in it.
  bool retries = false;   // Its last stream has failed, and no step came since.
  bool stopping = false;  // The schedule wants it to end.
  // Holds the step under way. Kept for the next stream when one breaks.
  StepBuffer buffer;
  std::optional<LaneEnding> reason;  // Why we end the stream; precedes gRPC's status.
  std::optional<StreamEnd> ended;

  // Notes why the lane ends its stream; returns the verdict that ends it.
  ReadVerdict Stop(FailureKind kind, absl::Status status) {
    reason = {.failure = {.kind = kind}, .status = std::move(status)};
    return ReadVerdict::kStop;
  }
  // Why the stream ended; nullopt: all its steps had come.
  std::optional<LaneEnding> Ending() const;
  // Makes the lane idle again. Returns what it had, for the caller to destroy.
  std::unique_ptr<ChunkStream> TakeStream();
};

}  // namespace systole

#endif  // SYSTOLE_CLIENT_LANES_FEED_LANE_H_
