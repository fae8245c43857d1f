// A lane of a StepSchedule: some steps of the feed, and the stream that brings them.
//
//   Seeking (a server) -> Streaming -> Stopping (cancelled, end not seen) -> Seeking ..
//
// Thread-compatible value type.
#ifndef SYSTOLE_CLIENT_SCHEDULE_SCHEDULE_LANE_H_
#define SYSTOLE_CLIENT_SCHEDULE_SCHEDULE_LANE_H_

#include <cstdint>
#include <optional>
#include <variant>

#include "absl/time/time.h"

namespace systole {

struct ScheduleLane {
  struct Seeking {};
  struct Streaming {
    int64_t end;  // The lane's first step that is beyond this stream.
    bool paused = false;
  };
  struct Stopping {};
  using State = std::variant<Seeking, Streaming, Stopping>;

  int64_t step;  // The lane's first step that is not complete.
  int64_t stride;
  int64_t end;
  int server;            // The server that the lane uses, or used last.
  bool hedge = false;    // Made for one step that was late on another lane.
  bool extra = false;    // A hedge whose step another lane has, too.
  bool won = false;      // A hedge whose copy came first.
  absl::Duration since;  // When the lane began to wait for its step, or for a server.
  absl::Duration heard_at;
  int suspect = 0;  // Failures since the last complete step, by kind.
  int damaged = 0;
  std::optional<int> lost;       // The server that failed first since the last complete step.
  absl::Duration failing_since;  // When the server `lost` failed.
  State state = Seeking();
};

}  // namespace systole

#endif  // SYSTOLE_CLIENT_SCHEDULE_SCHEDULE_LANE_H_
