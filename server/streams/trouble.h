// Why a request is refused or a stream ends, as a cause that can be counted: a status code says too
// little, since several causes share one.
//
// Thread-safe: no state.
#ifndef SYSTOLE_SERVER_STREAMS_TROUBLE_H_
#define SYSTOLE_SERVER_STREAMS_TROUBLE_H_

#include <cstddef>

#include "absl/status/status.h"

namespace systole {

enum class Trouble {
  kNone,
  kUnauthenticated,
  kNotPermitted,
  kNoPlace,     // All places are taken.
  kBadRequest,  // The request cannot be served as it is.
  kDraining,
  kGavePlace,  // The stream ended, so that another peer got a place.
  kStalled,    // The stream's client took nothing.
  kClientGone,
  kFailed,  // Anything else.
};
inline constexpr size_t kNumTroubles = 10;

// `status` with its cause. The mark stays in this process: a client gets code and message.
// REQUIRES: !status.ok().
absl::Status MarkedAs(Trouble trouble, absl::Status status);

// As marked, else by the code. OK is kNone.
Trouble TroubleOf(const absl::Status& status);

}  // namespace systole

#endif  // SYSTOLE_SERVER_STREAMS_TROUBLE_H_
