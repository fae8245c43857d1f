// Which steps of a feed a trainer gets, and where the feed goes on from a token.
//
// Thread-safe: no state.
#ifndef SYSTOLE_CLIENT_STEP_FEED_RANGE_H_
#define SYSTOLE_CLIENT_STEP_FEED_RANGE_H_

#include <cstdint>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "core/log/event_log.h"
#include "core/log/log_line.h"
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

// InvalidArgument unless [core_begin, core_end) lies inside [0, num_cores). If both are 0, they
// mean all cores.
absl::Status CheckWantedCores(int core_begin, int core_end, int num_cores);

// The step after the last one wanted; kNoEnd if there is no last one. `total_steps` and
// `steps_per_epoch` are the feed's. A feed without end has total_steps 0; steps_per_epoch is never
// 0.
//   InvalidArgument  the first step wanted lies beyond the feed's end.
absl::StatusOr<int64_t> EndOfWantedSteps(const WantedSteps& wanted, int64_t total_steps,
                                         int64_t steps_per_epoch);

// Narrows the fingerprint of `token`, which covers all of `order`, to the part before the token's
// position. Later changes of a mixture's weights then do not count.
void CoverThePastAlone(const Order& order, ResumeToken& token);

// The step with which a feed in `order` goes on from `token`. `own` is the token that this feed
// gives at the token's position. If no step of this feed begins at that position, the feed goes on
// with its next step. A line of `log` (may be null) then says how many examples the feed skips.
// `subject` is what the line is about.
//   FailedPrecondition  the token is from another feed. The message says what differs and, if a
//                       mixture's weights change, which change before the position.
//   InvalidArgument     no feed can be at the token's position, or the step is beyond
//                       kMaxStep.
absl::StatusOr<int64_t> StepOfToken(const ResumeToken& token, const ResumeToken& own,
                                    const Order& order, bool allow_mixed_content, EventLog* log,
                                    LogFields subject);

}  // namespace systole

#endif  // SYSTOLE_CLIENT_STEP_FEED_RANGE_H_
