// The one place that checks a server's answers before the client relies on them. A server may be
// broken, hostile or a foreign program. So no answer may crash the client, decide how much memory
// is allocated, or reach a terminal unescaped. Two kinds of data are checked elsewhere: chunks in
// proto/framing/chunk.h and client/lanes/lane_cursor.h, and the texts of errors in
// proto/framing/status_bridge.h.
//
// Thread-safe: no state.
#ifndef SYSTOLE_CLIENT_SERVERS_SERVER_ANSWER_H_
#define SYSTOLE_CLIENT_SERVERS_SERVER_ANSWER_H_

#include <cstdint>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "core/batch/slice_layout.h"
#include "core/order/order.h"
#include "google/protobuf/message.h"
#include "systole/v1/service.pb.h"

namespace systole {

// The largest answer to ResolveFeed that gRPC accepts, in bytes: twice what a feed of 65 tensors
// needs if each tensor has a table of 8 channels. The limit for answers with lists of shards or of
// damaged records is kMaxChunkMessageBytes.
inline constexpr int kMaxFeedAnswerBytes = 1 << 20;
// The largest answer to ReportTrainer that the client accepts. The answer is empty today.
inline constexpr int kMaxReportAnswerBytes = 1 << 10;

// Answers with larger counts or sizes are refused. The limit is so low that sums of a few numbers
// do not overflow.
inline constexpr int64_t kMaxCount = int64_t{1} << 60;

// Checks that `answer` can be what `spec` yields. Its tensors must be the spec's outputs and
// `valid`, with their types and the spec's batch. Each compact form must fit its tensor. The
// numbers must agree with each other, and the records and steps with the spec. The identity must
// fit a resume token.
//   Internal  `spec` cannot yield `answer`; the error names the field, its value and the value
//             wanted.
absl::Status CheckFeedAnswer(const v1::ResolveFeedResponse& answer, const v1::FeedSpec& spec);

// The order of the records in the feed of `answer`.
//   Internal  no order of `spec` fits its number of records. This cannot happen if `answer` passed
//             CheckFeedAnswer().
absl::StatusOr<Order> OrderOf(const v1::ResolveFeedResponse& answer, const v1::FeedSpec& spec);

// Checks that `answer` is about the same feed as `first`, the feed's first answer. Both passed
// CheckFeedAnswer() with `spec`. `allow_mixed_content` as in FeedClientOptions.
//   FailedPrecondition  `answer` is about another feed; the error says what was seen and what was
//                       wanted.
absl::Status CheckSameFeed(const v1::ResolveFeedResponse& answer,
                           const v1::ResolveFeedResponse& first, const v1::FeedSpec& spec,
                           bool allow_mixed_content);

// For answers that people see. Makes every text in `answer` and in the messages within it fit to
// print (core/text/foreign_text.h).
//   Internal  a number that counts something is below 0, above kMaxCount or not finite. The error
//             names the number.
absl::Status CleanAnswer(google::protobuf::Message& answer);

}  // namespace systole

#endif  // SYSTOLE_CLIENT_SERVERS_SERVER_ANSWER_H_
