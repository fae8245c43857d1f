// What the trainer gets from a feed: complete steps in order, and after them the end of the feed or
// the error that ends the feed early. Also counts how long the trainer waited, and for what. Uses
// no gRPC, no thread and no clock.
//
// Thread-compatible.
#ifndef SYSTOLE_CLIENT_LANES_TRAINER_END_H_
#define SYSTOLE_CLIENT_LANES_TRAINER_END_H_

#include <algorithm>
#include <cstdint>
#include <limits>
#include <optional>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "client/lanes/step_window.h"
#include "client/step/feed_client_stats.h"
#include "client/step/step.h"
#include "client/verdict/step_spans.h"
#include "client/verdict/wait_shares.h"
#include "proto/framing/trainer_report.h"

namespace systole {

class TrainerEnd {
 public:
  struct TakenStep {
    int64_t number = 0;
    StepBuffer buffer;
  };

  // Called once. The feed has the steps from `first_step` to `end_step` - 1. At most `window_steps`
  // complete steps wait here for the trainer.
  void Start(int64_t first_step, int64_t end_step, int64_t window_steps);
  // Adds a complete step. Returns whether the trainer takes this step next. `spans`: which stages
  // held up the step, and when.
  bool Put(int64_t step, StepBuffer buffer, StepSpans spans = {});
  // Steps from `step` on will not come, because of `error`. Steps before `step` are still handed
  // out.
  void EndEarly(int64_t step, absl::Status error);
  // From now on Next() returns `error` and hands out no step. If Cancel() is called again, the
  // later error is ignored.
  void Cancel(absl::Status error);
  // The trainer begins, or ends, a wait for the next step. In this class `now` is the current time.
  void WaitBegins(absl::Duration now) { waits_since_ = now; }
  void WaitEnds(absl::Duration now);
  // How long the trainer has waited for the next step. Zero if the trainer does not wait now.
  absl::Duration waiting(absl::Duration now) const {
    return waits_since_.has_value() ? waited_ + (now - *waits_since_) : absl::ZeroDuration();
  }

  // Whether Next() has an answer. REQUIRES: Start(), as for Next().
  bool HasNext() const;
  // A step, nullopt for the end of the feed, or an error. REQUIRES: HasNext(). Adds the wait for
  // the step to `stats`. The wait for the first step does not count, because servers begin their
  // work in that time.
  absl::StatusOr<std::optional<TakenStep>> Next(FeedClientStats& stats, absl::Duration now);
  // How long the trainer waited for what, and what limits the feed.
  FeedWaits waits() const { return shares_.waits(); }
  // The report that servers get about the trainer's waits. It may include a wait that is under way
  // at `now`.
  TrainerReport Report(absl::Duration now) const;

  // The error that ends the feed early, if one does.
  const absl::Status& error() const { return error_; }
  bool cancelled() const { return !cancelled_.ok(); }
  // As in StepWindow. 0 before Start().
  int64_t next_step() const { return window_.has_value() ? window_->next_step() : 0; }
  int64_t complete_steps() const { return window_.has_value() ? window_->complete_steps() : 0; }
  int64_t CountReady() const { return window_.has_value() ? window_->CountReady() : 0; }

 private:
  int64_t first_step_ = 0;
  std::optional<StepWindow> window_;  // Set by Start().
  std::vector<StepSpans> spans_;      // The spans of step t are at t mod window size.
  WaitShares shares_ = WaitShares(WaitCause::kWire);
  int64_t end_step_ = std::numeric_limits<int64_t>::max();
  int64_t error_step_ = std::numeric_limits<int64_t>::max();
  absl::Status error_;
  absl::Status cancelled_;
  absl::Duration waited_ = absl::ZeroDuration();  // The waits for the next step that have ended.
  std::optional<absl::Duration> waits_since_;     // When the present wait began, if any.
};

}  // namespace systole

#endif  // SYSTOLE_CLIENT_LANES_TRAINER_END_H_
