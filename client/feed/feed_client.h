// The trainer's end of a feed: takes the steps of a FeedSpec from one or more servers and hands
// them out in order, in the trainer's memory.
//
//   server 0 --> lane 0: steps f, f+K, ..    --+
//   server 1 --> lane 1: steps f+1, f+1+K, .. -+--> window of W steps --> Next(), in order
//   ..           K servers, K lanes          --+    (client/lanes/step_window.h)
//
// f is the feed's first step. If a lane loses its server, or the server lags, the lane goes on with
// another server, at the lane's first incomplete step (client/schedule/step_schedule.h). So the
// steps are the same whatever fails. No thread waits on a socket. A lane reads only steps for which
// the window has room. So when the trainer stops taking steps, the servers stop sending.
//
// Thread-compatible, except Cancel(), stats() and Metrics(), which any thread may call at any time.
#ifndef SYSTOLE_CLIENT_FEED_FEED_CLIENT_H_
#define SYSTOLE_CLIENT_FEED_FEED_CLIENT_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "client/lanes/feed_client_options.h"
#include "client/step/feed.h"
#include "client/step/feed_client_stats.h"
#include "client/step/step.h"
#include "core/batch/slice_layout.h"
#include "core/order/resume_token.h"
#include "systole/v1/feed.pb.h"
#include "systole/v1/service.pb.h"

namespace systole {

class FeedClient final : public Feed {
 public:
  // Asks servers what the spec yields, and waits for the first answer.
  //   InvalidArgument     an option is out of range, or the server refuses the spec.
  //   NotFound            the server has no such dataset.
  //   Unavailable         no server has answered within connect_timeout.
  //   other codes         a file of server addresses cannot be used. The message names the file.
  //   ResourceExhausted   a step is larger than max_step_bytes.
  static absl::StatusOr<std::unique_ptr<FeedClient>> Create(const v1::FeedSpec& spec,
                                                            FeedClientOptions options);

  // Like Create(), but begins where `token` was taken, and ignores `options.first_step`. The spec's
  // global_batch may differ from the one with which the token was taken. If no step of the new size
  // begins where the token was taken, the feed goes on with the next step, and `options.log` says
  // how many examples are skipped.
  //   FailedPrecondition  the dataset, order or content version differs from the token's.
  static absl::StatusOr<std::unique_ptr<FeedClient>> Resume(const v1::FeedSpec& spec,
                                                            const ResumeToken& token,
                                                            FeedClientOptions options);

  // Drops the steps that are still coming in. Does not wait for a server. Waits for the name
  // service only if a dns:/// name is being looked up.
  ~FeedClient() override;

  // The methods of Feed. The errors of Next():
  //   DataLoss            a record is damaged and the spec says FAIL, or the client asked for one
  //                       step eight times in a row, and each time a message was damaged on the
  //                       way.
  //   FailedPrecondition  a server's data are not the data that the feed began with.
  //   Unavailable         no step came while the trainer waited as long as options.retry_for.
  //   Internal            a server broke the protocol; names the server and the field.
  //   ResourceExhausted   no memory for a step.
  //   Cancelled           after Cancel().
  // Also any other error that the server returns.
  absl::StatusOr<std::optional<Step>> Next() override;
  bool WaitForNext(absl::Duration timeout) override;
  void Cancel() override;
  ResumeToken TokenAt(int64_t next_step) const override;
  int64_t next_step() const override;
  int64_t end_step() const override;
  bool has_end() const override;
  int64_t steps_per_epoch() const override;
  int64_t num_records() const override;
  const Order& order() const override;
  const StepShape& shape() const override;
  std::string Explain() const override;
  FeedClientStats stats() const override;

  // Ends the feed before `step`. This is for trainers that learn their number of steps from the
  // server's answer. REQUIRES: options.start_at_once is false, Next() and WaitForNext() were not
  // called yet, and `step` is in [next_step(), end_step()] (CHECK).
  void EndBefore(int64_t step);

  // The server's answer about the spec.
  const v1::ResolveFeedResponse& info() const;
  // Whether the client may finish tensors (FeedClientOptions::finish), and at least one tensor can
  // travel as uint8 (v1::CompactForm).
  bool can_be_compact() const;
  // The number of steps that may wait until the trainer takes them: W.
  int64_t window_steps() const;

 private:
  class Impl;
  explicit FeedClient(std::unique_ptr<Impl> impl);
  // `token` may be null.
  static absl::StatusOr<std::unique_ptr<FeedClient>> Make(const v1::FeedSpec& spec,
                                                          const ResumeToken* token,
                                                          FeedClientOptions options);

  std::unique_ptr<Impl> impl_;
};

}  // namespace systole

#endif  // SYSTOLE_CLIENT_FEED_FEED_CLIENT_H_
