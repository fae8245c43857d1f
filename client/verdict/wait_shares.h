// Finds out why a trainer waits for its feed. Compares each wait with the stages of the step that
// the trainer waited for (StepSpans), and says what limits the feed.
//
//   trainer   |   works   |     waits     |   works   | waits |
//   step                | storage | decode |..
//                         \_ counted _____/
//
// A pure sum: no thread, no clock. Thread-compatible.
#ifndef SYSTOLE_CLIENT_VERDICT_WAIT_SHARES_H_
#define SYSTOLE_CLIENT_VERDICT_WAIT_SHARES_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "absl/time/time.h"
#include "client/verdict/feed_verdict.h"
#include "client/verdict/step_spans.h"

namespace systole {

// The trainer's wait for a step that it got.
struct StepWait {
  absl::Duration at;      // When it got the step.
  absl::Duration waited;  // How long it had waited for the step until then.
  // When the step was ready to be taken.
  absl::Duration ready_at;
};

// A trainer's waits and its speed in the last seconds.
struct LatelyWaited {
  FeedVerdict verdict;
  double steps_per_second = 0;
};

class WaitShares {
 public:
  // Times of a wait that lie in no span of the step count as `rest`: kWire if steps come from
  // servers.
  explicit WaitShares(WaitCause rest) : rest_(rest) {}

  // The trainer got a step. The wait for the first step is left out, because the feed begins in
  // that time.
  void Take(const StepWait& wait, const StepSpans::Spans& spans);

  // What is known of the last seconds, as if the trainer got its next step now. The cause of the
  // trainer's present wait is not known yet, and counts as kUnknown. Nullopt: the trainer has got
  // no step at all.
  std::optional<LatelyWaited> Lately(const StepWait& so_far) const;

  FeedWaits waits() const {
    return {.times = total_.times, .verdict = VerdictOf(total_), .recent = VerdictOf(recent_)};
  }

 private:
  struct Sums {
    double steps = 0;
    WaitTimes times;
    double ready_seconds = 0;  // The time in which steps lay ready.
    // For each tensor, the time of waits for kDecode.
    struct Output {
      double seconds = 0;
      int operation = -1;  // The operation that was last named as the costliest.
    };
    std::vector<Output> outputs;

    void Fade(double part);
    void Add(const Sums& more);
  };
  static FeedVerdict VerdictOf(const Sums& sums);

  const WaitCause rest_;
  std::optional<absl::Duration> last_;  // When the trainer got its last step.
  Sums total_;
  Sums recent_;
};

}  // namespace systole

#endif  // SYSTOLE_CLIENT_VERDICT_WAIT_SHARES_H_
