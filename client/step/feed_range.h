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
// Stands for the end of a feed without end.
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

// The number of the step after the last wanted step; kNoEnd if the wanted steps have no end.
// `total_steps` is the number of the feed's steps; 0: the feed has no end. `steps_per_epoch` is not
// 0.
//   InvalidArgument  the first step wanted lies beyond the feed's end.
absl::StatusOr<int64_t> EndOfWantedSteps(const WantedSteps& wanted, int64_t total_steps,
                                         int64_t steps_per_epoch);

// Lets the fingerprint and the weight changes of `token`, which cover all of `order`, cover only
// the part before the token's position. So the token also fits a feed that changes the weights
// differently after this position.
void CoverThePastAlone(const Order& order, ResumeToken& token);

// The step with which a feed in `order` goes on from `token`. `own` is the token that this feed
// gives at the token's position. If no step of this feed begins at that position, the result is the
// first step after the position, and a line in `log` (may be null) says how many examples the feed
// skips. `subject`: the fields of this line.
//   FailedPrecondition  the token is from another feed. The message says what differs. If this is a
//                       change of a mixture's weights before the position, it says which change.
//   InvalidArgument     no feed can be at the token's position, or the step is beyond
//                       kMaxStep.
absl::StatusOr<int64_t> StepOfToken(const ResumeToken& token, const ResumeToken& own,
                                    const Order& order, bool allow_mixed_content, EventLog* log,
                                    LogFields subject);

}  // namespace systole

#endif  // SYSTOLE_CLIENT_STEP_FEED_RANGE_H_
