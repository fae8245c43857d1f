// Why a request is refused or a stream ends, as a cause that can be counted. Several causes share a
// status code, so the code alone says too little.
//
// Thread-safe: no state.
#ifndef SYSTOLE_SERVER_STREAMS_END_CAUSE_H_
#define SYSTOLE_SERVER_STREAMS_END_CAUSE_H_

#include <cstddef>

#include "absl/status/status.h"

namespace systole {

enum class EndCause {
  kNone,
  kUnauthenticated,
  kNotPermitted,
  kNoPlace,     // All places are taken.
  kBadRequest,  // The request cannot be served as it is.
  kDraining,
  kGavePlace,  // The stream was ended to give its place to another peer.
  kStalled,    // The stream's client took nothing.
  kClientGone,
  kRemoved,  // The dataset of the stream or the request was removed from the config.
  kFailed,   // Anything else.
};
inline constexpr size_t kNumEndCauses = 11;

// `status`, marked with its cause. The mark stays in this process. A client gets only code and
// message. REQUIRES: !status.ok().
absl::Status MarkedAs(EndCause cause, absl::Status status);

// The marked cause. Without a mark, the code decides. OK is kNone.
EndCause EndCauseOf(const absl::Status& status);

}  // namespace systole

#endif  // SYSTOLE_SERVER_STREAMS_END_CAUSE_H_
