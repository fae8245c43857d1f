#include "client/lanes/feed_lane.h"

#include "absl/strings/str_cat.h"

namespace systole {

std::optional<LaneEnding> FeedLane::Ending() const {
  if (reason.has_value()) return reason;
  if (!ended->status.ok()) {
    // A lane has a stream only to a server that has answered.
    return LaneEnding{.failure = FailureOf(ended->status.code(), ended->pushback, /*running=*/true),
                      .status = ended->status};
  }
  if (cursor->at_end()) return std::nullopt;
  return LaneEnding{.failure = {.kind = FailureKind::kLost},
                    .status = absl::UnavailableError(
                        absl::StrCat("the stream ended before step ", cursor->step()))};
}

std::unique_ptr<ChunkStream> FeedLane::TakeStream() {
  ended.reset();
  reason.reset();
  cursor.reset();
  stopping = false;
  return std::move(stream);
}

}  // namespace systole
