// The one place where what a server says is checked before anything here relies on it. A server may
// be broken, hostile, or none of ours: no answer may crash the client, decide an allocation, or
// reach a terminal as it came. (Chunks are checked one by one: proto/framing/chunk.h and
// client/feed/lane_cursor.h. Error messages are made fit to print by
// proto/framing/status_bridge.h.)
//
// Thread-safe: no state.
#ifndef SYSTOLE_CLIENT_FEED_SERVER_ANSWER_H_
#define SYSTOLE_CLIENT_FEED_SERVER_ANSWER_H_

#include <cstdint>

#include "absl/status/status.h"
#include "core/batch/slice_layout.h"
#include "google/protobuf/message.h"
#include "systole/v1/service.pb.h"

namespace systole {

// Largest answer to ResolveFeed that gRPC takes in, in bytes: room for the 65 tensors of a feed
// many times over. Lists of shards and of damaged records may be as large as a chunk's message.
inline constexpr int kMaxFeedAnswerBytes = 1 << 20;

// Counts and sizes above this are mistaken; sums of some of them do not overflow.
inline constexpr int64_t kMaxCount = int64_t{1} << 60;

// Whether `answer` can be what `spec` yields: the spec's outputs and `valid`, of their types, in
// slices of the spec's batch; numbers that agree; an identity that fits a resume token.
//   Internal  it cannot; names the field, what came and what was wanted.
absl::Status CheckFeedAnswer(const v1::ResolveFeedResponse& answer, const v1::FeedSpec& spec);

// Whether `answer` is of the feed that began with the answer `first`. Both are good by themselves.
// `layout` is what a slice of `answer` is to be. `allow_mixed_content` as in FeedClientOptions.
//   FailedPrecondition  it is not; says what was seen and what was wanted.
absl::Status CheckSameFeed(const v1::ResolveFeedResponse& answer,
                           const v1::ResolveFeedResponse& first, const SliceLayout& layout,
                           bool allow_mixed_content);

// For answers that are shown to people: makes every text in `answer` and in the messages within it
// fit to print (core/status/foreign_text.h).
//   Internal  a number that counts something is below 0, above kMaxCount or not finite; names it.
absl::Status CleanAnswer(google::protobuf::Message& answer);

}  // namespace systole

#endif  // SYSTOLE_CLIENT_FEED_SERVER_ANSWER_H_
