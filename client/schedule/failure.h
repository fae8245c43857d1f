// Why a stream or a question to a server ended early.
//
// Thread-safe: no state.
#ifndef SYSTOLE_CLIENT_SCHEDULE_FAILURE_H_
#define SYSTOLE_CLIENT_SCHEDULE_FAILURE_H_

#include <optional>

#include "absl/status/status.h"
#include "absl/time/time.h"

namespace systole {

enum class FailureKind {
  // The server cannot be reached, does not answer in time, or is full and says when to try again
  // (this time is called a pushback). Another server may help.
  kLost,
  // The server said that it is draining, which means that it is about to stop. It may still answer
  // questions.
  kLeaving,
  // The cause may be a torn connection, a bit that was flipped on the way, or a bug in the server.
  // Against a bug no attempt helps, so there are few attempts.
  kSuspect,
  // A request, an answer or a chunk was damaged on the way. The attempts are limited, but a bad
  // path hardly ever uses up all attempts: if one step in eight is damaged, eight damaged steps in
  // a row come once in 2^24 steps.
  kDamaged,
  // No further attempt can help.
  kFinal,
};

// After this many failures of one kind, with no complete step between them, the feed ends.
inline constexpr int kMaxSuspectFailures = 5;
inline constexpr int kMaxDamagedFailures = 8;

// The longest pause that a server can demand. A longer pushback counts as this pause.
inline constexpr absl::Duration kMaxPushback = absl::Minutes(1);

struct Failure {
  FailureKind kind = FailureKind::kLost;
  // The least time until the next attempt, if the server gave such a time. At most kMaxPushback.
  absl::Duration pushback = absl::ZeroDuration();
};

// The failure that an error of a server or of the connection means. `pushback`: the pause that the
// server gave, if any (the trailing metadata "grpc-retry-pushback-ms"). `running`: whether a server
// has served the feed already. If `running`, three errors are kSuspect that otherwise are kFinal,
// because another attempt may succeed: an unknown method, a message that is too large, and a caller
// that is not let in.
Failure FailureOf(absl::StatusCode code, std::optional<absl::Duration> pushback, bool running);

}  // namespace systole

#endif  // SYSTOLE_CLIENT_SCHEDULE_FAILURE_H_
