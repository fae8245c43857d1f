// Before a resume token's position, a feed must have the same changes of a mixture's weights as the
// token's feed. DifferentPast() says where the changes differ, and what to write instead.
//
// Thread-safe: no state.
#ifndef SYSTOLE_CLIENT_STEP_PAST_WEIGHTS_H_
#define SYSTOLE_CLIENT_STEP_PAST_WEIGHTS_H_

#include <cstdint>
#include <string>

#include "core/order/order.h"
#include "core/order/resume_token.h"

namespace systole {

// The largest global batch that DifferentPast() tries for the token's feed. Trying all batches
// takes some ten milliseconds for a few changes of weights, and seconds for 64 changes.
inline constexpr int64_t kMaxBatchFound = int64_t{1} << 16;

// Says which change of the weights before the token's position differs between the token's feed and
// a feed in `order`, and what to do. Empty if no change differs. Changes at the same steps may
// differ because the token's feed had another global batch, so that its steps began at other
// examples. If exactly one global batch explains the token, the text names, for each change of
// `order` that is given by a step, the example at which this step began in the token's feed.
// REQUIRES: both feeds have the same dataset.
std::string DifferentPast(const ResumeToken& token, const Order& order);

}  // namespace systole

#endif  // SYSTOLE_CLIENT_STEP_PAST_WEIGHTS_H_
