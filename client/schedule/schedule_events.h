// The input and output of a StepSchedule: its options, the events that go in, the actions that come
// out, and its counts.
//
// Thread-safe: value types and constants.
#ifndef SYSTOLE_CLIENT_SCHEDULE_SCHEDULE_EVENTS_H_
#define SYSTOLE_CLIENT_SCHEDULE_SCHEDULE_EVENTS_H_

#include <cstdint>
#include <optional>
#include <variant>
#include <vector>

#include "absl/time/time.h"
#include "client/schedule/failure.h"

namespace systole {

// The most steps of one stream. After these steps the lane (some steps of the feed:
// schedule_lane.h) opens a new stream. So if a server is about to stop, its streams end soon.
inline constexpr int64_t kStepsPerStream = 1024;
// How many second copies of steps (hedges) are allowed beyond `hedge_fraction`, which allows none
// while few steps have arrived. At most this many second copies are on the way at a time, because
// each takes memory outside of the window.
inline constexpr int64_t kHedgeBurst = 2;
// The most servers that a feed uses at a time, unless its options say otherwise.
inline constexpr int kMostServers = 16;

struct ScheduleOptions {
  // When the feed gives up. If no step has arrived and no stream is open, it gives up after the
  // trainer has waited for `connect_timeout`. Otherwise it gives up after the trainer has waited
  // for `retry_for` without any step arriving.
  absl::Duration connect_timeout = absl::Seconds(10);
  absl::Duration retry_for = absl::Minutes(10);
  // A server that sends nothing for this long while a step is wanted counts as failed.
  absl::Duration silence_timeout = absl::Seconds(60);
  // A server that failed is asked again at once, and then after pauses that double from `backoff`
  // to `max_backoff`, each up to a quarter longer by chance.
  absl::Duration backoff = absl::Milliseconds(50);
  absl::Duration max_backoff = absl::Seconds(2);
  // Second copies may be requested for this fraction of the steps that arrived, and for kHedgeBurst
  // steps more. 0: no second copies at all.
  double hedge_fraction = 0.02;
  // How many of the listed servers the feed uses: at the beginning (first_servers), and at most
  // (max_servers). While the trainer waits, the feed adds servers one by one, as long as each added
  // server has helped.
  int first_servers = kMostServers;
  int max_servers = kMostServers;
  // Decides the random part of the pauses. Clients with different seeds do not come back to a
  // server at the same time.
  uint64_t seed = 0;
};

// What a server says about itself.
struct ServerLoad {
  // The part of the time that its threads worked lately, from 0 to 1.
  double busy = 0;
  // How many more streams the server would accept.
  int64_t free_places = 0;
};

// Events: what has happened. Servers have numbers that are never used twice: a server that comes
// back to the list gets a new number.

// The server is in the list of servers now. Servers of the lowest `rank` are used first
// (server_subset.h).
struct ServerJoined {
  int server;
  uint64_t rank = 0;
};
struct ServerLeft {
  int server;
};
// The client knows now which steps to fetch. `window`: for how many steps it has room at a time.
struct FeedStarted {
  int64_t first_step;
  int64_t end_step;
  int64_t window;
};
// A server answered the client's question well (Answered); the question failed (AskFailed).
struct Answered {
  int server;
  std::optional<ServerLoad> load = std::nullopt;
};
struct AskFailed {
  int server;
  Failure failure;
};
// Bytes have arrived on a lane's stream.
struct ChunkArrived {
  int lane;
};
// The current step of the lane's stream is complete.
struct StepArrived {
  int lane;
};
// A lane's stream has ended. Without `failure` the stream ended well, or was cancelled.
struct StreamEnded {
  int lane;
  std::optional<Failure> failure;
};
// The trainer waits for the next step (StepWanted); the trainer has taken it (StepTaken).
struct StepWanted {};
struct StepTaken {};
// The client ends the feed. All streams and questions are cancelled.
struct FeedStopped {};
// Time has passed. StepSchedule::wake_at() says when the next Tick is due at the latest.
struct Tick {};
using ScheduleEvent =
    std::variant<ServerJoined, ServerLeft, FeedStarted, Answered, AskFailed, ChunkArrived,
                 StepArrived, StreamEnded, StepWanted, StepTaken, FeedStopped, Tick>;

// Actions: what the client must do.

// Ask the server what the feed yields. Answered or AskFailed follows.
struct AskServer {
  int server;
};
// Forget a server that left. It has neither a stream nor a question any more.
struct ForgetServer {
  int server;
};
// Close the connection to a server that is in the list but is not used any more. It has neither a
// stream nor a question.
struct ReleaseServer {
  int server;
};
// Open a stream for `count` steps: first_step, first_step + stride, .. StreamEnded follows at its
// end.
struct OpenStream {
  int lane;
  int server;
  int64_t first_step;
  int64_t count;
  int64_t stride;
};
// Cancel the stream. `paused`: no read is under way. `silent`: the reason is that the server has
// sent nothing for silence_timeout. StreamEnded follows.
struct StopStream {
  int lane;
  bool paused;
  bool silent = false;
};
// Read nothing from the lane's stream after the current step (PauseStream); read on (ResumeStream).
struct PauseStream {
  int lane;
};
struct ResumeStream {
  int lane;
};
// Deliver the lane's copy of `step`, which came first. Later copies are not delivered.
struct DeliverStep {
  int lane;
  int64_t step;
};
// The lane is over. Its stream has ended.
struct CloseLane {
  int lane;
};
// The feed ends before `step`. `failure`: the kind of the last failure; nullopt: no step came for
// `waited`.
struct GiveUp {
  int64_t step;
  std::optional<FailureKind> failure;
  absl::Duration waited;
};
// For the log only: `server` is late with `step`. `second`: the server that sends a second copy of
// the step; nullopt: other servers go on with the steps of `server`.
struct StepLate {
  int64_t step;
  int server;
  std::optional<int> second;
};
using ScheduleAction =
    std::variant<AskServer, ForgetServer, ReleaseServer, OpenStream, StopStream, PauseStream,
                 ResumeStream, DeliverStep, CloseLane, GiveUp, StepLate>;
using ScheduleActions = std::vector<ScheduleAction>;

// Counted since the beginning.
struct ScheduleCounts {
  // Failed streams after which the feed went on, and failed questions.
  int64_t retries = 0;
  // Second copies: those requested (hedges), those that came first (hedges_won), and those that
  // came later or not at all (hedges_lost).
  int64_t hedges = 0;
  int64_t hedges_won = 0;
  int64_t hedges_lost = 0;
  // Steps within the window that were moved to another server because their server was slow.
  int64_t relieved_steps = 0;
  // Servers that joined or left after the feed's beginning.
  int64_t membership_changes = 0;
  // Questions to servers that had failed or were late.
  int64_t probes = 0;
};

// What holds up a feed.
struct ScheduleWaiting {
  // The server that was lost; nullopt: no server was lost.
  std::optional<int> lost;
  // The server that must send an answer or a step.
  int asking = 0;
  // How long this wait has lasted, and its limit: connect_timeout, retry_for or silence_timeout.
  absl::Duration waited;
  absl::Duration limit;
};

}  // namespace systole

#endif  // SYSTOLE_CLIENT_SCHEDULE_SCHEDULE_EVENTS_H_
