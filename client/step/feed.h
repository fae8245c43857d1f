// The steps of a FeedSpec in order, in the trainer's memory. Servers make the steps (FeedClient),
// or the trainer's own process does (client/local). Bytes and tokens are the same in both cases.
//
// Thread-compatible, except Cancel(), stats() and Metrics(), which any thread may call at any time.
#ifndef SYSTOLE_CLIENT_STEP_FEED_H_
#define SYSTOLE_CLIENT_STEP_FEED_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "client/step/feed_client_stats.h"
#include "client/step/feed_metrics.h"
#include "client/step/step.h"
#include "core/batch/slice_layout.h"
#include "core/metrics/metric_family.h"
#include "core/order/order.h"
#include "core/order/resume_token.h"

namespace systole {

class Feed {
 public:
  Feed() = default;
  virtual ~Feed() = default;
  Feed(const Feed&) = delete;
  Feed& operator=(const Feed&) = delete;

  // Waits for the next step and returns it, or nullopt after the last one. After an error, Next()
  // first returns the complete steps before the step that failed. Then every call returns that
  // error. Cancelled after Cancel(). Each kind of feed lists its other errors.
  virtual absl::StatusOr<std::optional<Step>> Next() = 0;
  // Waits until Next() can return at once, for at most `timeout`. Returns false if Next() would
  // still wait.
  virtual bool WaitForNext(absl::Duration timeout) = 0;
  // From now on every call of Next() returns Cancelled, also a call that is waiting now.
  virtual void Cancel() = 0;

  // A checkpoint: every step that Next() has returned counts as consumed.
  ResumeToken Token() const { return TokenAt(next_step()); }
  // The checkpoint of a trainer that has taken more steps than it has consumed: `next_step` is the
  // first step that the trainer has not consumed.
  virtual ResumeToken TokenAt(int64_t next_step) const = 0;
  // The number of the step that Next() returns next.
  virtual int64_t next_step() const = 0;
  // The number of the step after the last step that the trainer wants. Has no meaning if has_end()
  // is false.
  virtual int64_t end_step() const = 0;
  virtual bool has_end() const = 0;
  virtual int64_t steps_per_epoch() const = 0;
  // The number of records of the dataset, or of all members.
  virtual int64_t num_records() const = 0;
  // The order of the records. Valid as long as the feed.
  virtual const Order& order() const = 0;

  // The properties that all steps share. Valid as long as the feed.
  virtual const StepShape& shape() const = 0;
  // The layout of one core's slice.
  const SliceLayout& layout() const { return shape().layout; }
  int core_begin() const { return shape().core_begin; }
  int core_end() const { return shape().core_end; }

  // A text that says how the transforms of each output run (core/spec/transform_runs.h). A
  // FeedClient gets this text from the server that answered first.
  virtual std::string Explain() const = 0;

  virtual FeedClientStats stats() const = 0;
  // The numbers of stats(), for a monitor. ExpositionOf() (core/metrics/exposition.h) writes them
  // in Prometheus' text format. If a process has several feeds, give the metrics of each feed
  // a label of their own.
  std::vector<MetricFamily> Metrics() const { return FeedFamilies(stats()); }
};

}  // namespace systole

#endif  // SYSTOLE_CLIENT_STEP_FEED_H_
