// What a trainer decides about its feed. The defaults are for a feed over a local network.
//
// Thread-compatible value types.
#ifndef SYSTOLE_CLIENT_FEED_FEED_CLIENT_OPTIONS_H_
#define SYSTOLE_CLIENT_FEED_FEED_CLIENT_OPTIONS_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "client/feed/feed_watch.h"
#include "client/feed/step.h"

namespace systole {

// Whether batches come through memory that client and server share.
enum class SameHost {
  // Where the server is on this machine, has a "unix:PATH" address, belongs to the same user (or
  // root) and shares; otherwise as bytes. The steps are the same either way.
  kAuto,
  kOff,
};

struct FeedClientOptions {
  // "HOST:PORT" or "unix:PATH", at least one. All must serve the same data. Each is asked for every
  // K-th step.
  std::vector<std::string> servers;

  SameHost same_host = SameHost::kAuto;

  // The first step wanted, >= 0.
  int64_t first_step = 0;
  // Steps wanted, as a number or as so many epochs' worth of them; at most one of the two is set.
  // Both 0: to the end of the feed, which a feed with 0 epochs does not have.
  int64_t steps = 0;
  int64_t epochs = 0;
  // The cores wanted, core_begin .. core_end - 1. Both 0: all.
  int core_begin = 0;
  int core_end = 0;

  // Memory for steps that wait to be taken, in bytes. More hide longer hiccups. Room for two steps,
  // and for one more than there are servers, is always taken, however large they are.
  int64_t prefetch_bytes = int64_t{256} << 20;
  // The largest step accepted, in bytes over the cores wanted. What a server says of its tensors
  // decides how much is allocated; this stops a mistaken or hostile one.
  int64_t max_step_bytes = int64_t{8} << 30;
  // Where the tensors land.
  StepMemory memory;

  // How long to try until the first answer, and then until the first step.
  absl::Duration connect_timeout = absl::Seconds(10);
  // How long to try, after a connection was lost, until the next step is there.
  absl::Duration retry_for = absl::Minutes(10);
  // A server that sends nothing for so long, while a step is wanted of it, counts as lost. Must be
  // longer than a server takes for one step.
  absl::Duration silence_timeout = absl::Seconds(60);
  // The pause before a server is tried again after all of them failed: doubled each time, from
  // `backoff` up to `max_backoff`.
  absl::Duration backoff = absl::Milliseconds(50);
  absl::Duration max_backoff = absl::Seconds(2);

  // Accept servers whose content versions differ from each other or from the resume token's: steps
  // may then differ in a few bits from those of another run. What stands where is the same.
  bool allow_mixed_content = false;

  // Told what the feed waits for, from Create() on; may be null, and may be given to several feeds.
  // Shared with the caller, for either may go first.
  std::shared_ptr<FeedWatch> watch;
};

}  // namespace systole

#endif  // SYSTOLE_CLIENT_FEED_FEED_CLIENT_OPTIONS_H_
