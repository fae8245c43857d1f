// Says whether a client that began a feed at another server can go on with the same feed at this
// one.
//
// Thread-safe: no state.
#ifndef SYSTOLE_SERVER_RPC_FEED_IDENTITY_H_
#define SYSTOLE_SERVER_RPC_FEED_IDENTITY_H_

#include "absl/status/status.h"
#include "systole/v1/service.pb.h"

namespace systole {

// Returns FailedPrecondition unless a client that began with `expected` can go on with `own`, the
// identity of the feed of `spec` at this server. The message says what differs, and what to do.
absl::Status CheckIdentity(const v1::FeedIdentity& expected, const v1::FeedIdentity& own,
                           const v1::FeedSpec& spec);

}  // namespace systole

#endif  // SYSTOLE_SERVER_RPC_FEED_IDENTITY_H_
