// Decides when a lane that has lost its server tries again, and when it gives up. It has no clock:
// the caller passes the time.
//
// Thread-compatible.
#ifndef SYSTOLE_CLIENT_FEED_LANE_RETRY_H_
#define SYSTOLE_CLIENT_FEED_LANE_RETRY_H_

#include <cstdint>
#include <optional>

#include "absl/status/status.h"
#include "absl/time/time.h"

namespace systole {

// Why a stream ended before its time.
enum class FailureKind {
  // The server cannot be reached, or said that it is draining. Another server may help.
  kLost,
  // A torn connection looks like this, but a bug in the server does too: few attempts.
  kSuspect,
  // A request, an answer or a chunk was damaged on the way: few attempts.
  kDamaged,
  // No other attempt can help.
  kFinal,
};

// The kind of an error that a server or the connection gave.
FailureKind KindOf(absl::StatusCode code);

// After this many failures of one kind, with no complete step between them, the feed ends.
inline constexpr int kMaxSuspectFailures = 5;
inline constexpr int kMaxDamagedFailures = 3;

struct LaneRetryOptions {
  // Servers tried without a pause, one after the other, before the first pause.
  int servers = 1;
  absl::Duration backoff = absl::Milliseconds(50);
  absl::Duration max_backoff = absl::Seconds(2);
};

class LaneRetry {
 public:
  explicit LaneRetry(const LaneRetryOptions& options) : options_(options) {}

  // A step is complete: failures before it do not count any more.
  void Progress();
  // Whether an attempt has failed since the last complete step, and when the first one did.
  bool is_failing() const { return failing_since_.has_value(); }
  std::optional<absl::Duration> failing_since() const { return failing_since_; }

  // How long to wait before the next attempt, or nullopt: give up. `limit` is how long a lane may
  // go without progress, counted from the first failure.
  std::optional<absl::Duration> Failed(FailureKind kind, absl::Duration now, absl::Duration limit);

 private:
  const LaneRetryOptions options_;
  std::optional<absl::Duration> failing_since_;
  int failures_ = 0;
  int suspect_ = 0;
  int damaged_ = 0;
};

}  // namespace systole

#endif  // SYSTOLE_CLIENT_FEED_LANE_RETRY_H_
