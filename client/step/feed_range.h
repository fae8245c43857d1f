// Which steps of a feed a trainer gets, and whether and how a token fits the feed.
//
// Thread-safe: no state.
#ifndef SYSTOLE_CLIENT_STEP_FEED_RANGE_H_
#define SYSTOLE_CLIENT_STEP_FEED_RANGE_H_

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "core/order/feed_position.h"
#include "core/order/order.h"
#include "core/order/resume_token.h"

namespace systole {

// The last step that can be asked for. It is far beyond any feed, yet so small that sums do not
// overflow.
inline constexpr int64_t kMaxStep = int64_t{1} << 60;
// Stands for the end of a feed that has none.
inline constexpr int64_t kNoEnd = 2 * kMaxStep;

// The steps that a trainer wants. FeedClientOptions says what the fields mean.
struct WantedSteps {
  int64_t first_step = 0;
  int64_t steps = 0;
  int64_t epochs = 0;
};
// InvalidArgument if a number is out of range; names the field.
absl::Status CheckWantedSteps(const WantedSteps& wanted);

// InvalidArgument unless [core_begin, core_end) lies inside [0, num_cores), or both are 0: all.
absl::Status CheckWantedCores(int core_begin, int core_end, int num_cores);

// The step after the last one wanted; kNoEnd if there is no last one. `total_steps` and
// `steps_per_epoch` are the feed's. A feed without end has total_steps 0; steps_per_epoch is never
// 0.
//   InvalidArgument  the first step wanted lies beyond the feed's end.
absl::StatusOr<int64_t> EndOfWantedSteps(const WantedSteps& wanted, int64_t total_steps,
                                         int64_t steps_per_epoch);

// Makes a token whose fingerprint covers all of `order` cover only what is before its position:
// later changes of a mixture's weights do not count.
void CoverThePastAlone(const Order& order, ResumeToken& token);

// FailedPrecondition if `token` is from another feed than `own`, the token that the feed in `order`
// gives at the same position. Says what differs. If a mixture's weights change, it says which
// change before that position differs.
absl::Status CheckToken(const ResumeToken& token, const ResumeToken& own, const Order& order,
                        bool allow_mixed_content);

// Says how many examples a feed of `global_batch` skips that is resumed from `token`, for the log.
std::string SkippedText(const ResumeToken& token, int64_t global_batch, const ResumedStep& resumed);

}  // namespace systole

#endif  // SYSTOLE_CLIENT_STEP_FEED_RANGE_H_
