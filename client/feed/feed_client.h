// The trainer's end of a feed: takes the steps of a FeedSpec from one or more servers and hands
// them out in order, in the trainer's memory.
//
//   server 0 --> lane 0: steps f, f+K, ..    --+
//   server 1 --> lane 1: steps f+1, f+1+K, .. -+--> window of W steps --> Next(), in order
//   ..           K servers, K lanes          --+    (client/feed/step_window.h)
//
// A lane whose server is lost goes on with the next server at its first incomplete step, so the
// steps are the same whatever happens on the way. No thread waits on a socket, and nothing is read
// from one that has no place in the window: a trainer that stops taking steps stops the servers.
//
// Thread-compatible, but for Cancel() and stats(), which any thread may call at any time.
#ifndef SYSTOLE_CLIENT_FEED_FEED_CLIENT_H_
#define SYSTOLE_CLIENT_FEED_FEED_CLIENT_H_

#include <cstdint>
#include <memory>
#include <optional>

#include "absl/status/statusor.h"
#include "client/feed/feed_client_options.h"
#include "client/feed/feed_client_stats.h"
#include "client/feed/step.h"
#include "core/batch/slice_layout.h"
#include "core/order/resume_token.h"
#include "systole/v1/feed.pb.h"
#include "systole/v1/service.pb.h"

namespace systole {

class FeedClient {
 public:
  // Waits until a server has answered what the spec yields.
  //   InvalidArgument     an option is out of range, or the server refuses the spec.
  //   NotFound            the server has no such dataset.
  //   Unavailable         no server has answered within connect_timeout.
  //   ResourceExhausted   a step is larger than max_step_bytes.
  static absl::StatusOr<std::unique_ptr<FeedClient>> Create(const v1::FeedSpec& spec,
                                                            FeedClientOptions options);

  // The same, from where `token` was taken; `options.first_step` is not used.
  //   FailedPrecondition  the dataset, the order or the content version is not the token's.
  static absl::StatusOr<std::unique_ptr<FeedClient>> Resume(const v1::FeedSpec& spec,
                                                            const ResumeToken& token,
                                                            FeedClientOptions options);

  // Gives up what was on the way. Does not wait for a server.
  ~FeedClient();
  FeedClient(const FeedClient&) = delete;
  FeedClient& operator=(const FeedClient&) = delete;

  // The next step, or nullopt after the last one. Waits. The first error sticks; the complete steps
  // before it are still handed out.
  //   DataLoss            a record is damaged and the spec says FAIL, or three times in a row a
  //                       chunk of one step, or the request for it, was damaged on the way.
  //   FailedPrecondition  a server's data are not those the feed began with.
  //   Unavailable         no server has sent the step for retry_for.
  //   Internal            a server broke the protocol; names the server and the field.
  //   ResourceExhausted   no memory for a step.
  //   Cancelled           after Cancel().
  // and what the server says of its own.
  absl::StatusOr<std::optional<Step>> Next();

  // Makes Next() return Cancelled, now and from now on.
  void Cancel();

  // A checkpoint: every step that Next() has returned counts as consumed.
  ResumeToken Token() const { return TokenAt(next_step()); }
  // The same for a trainer that holds back steps: `next_step` is the first it has not consumed.
  ResumeToken TokenAt(int64_t next_step) const;
  // The number of the step that Next() returns next.
  int64_t next_step() const;
  // The first step that is not wanted; without meaning unless has_end().
  int64_t end_step() const;
  bool has_end() const;

  // The slice of one core. Valid as long as the client.
  const SliceLayout& layout() const;
  int core_begin() const;
  int core_end() const;
  // What the server said of the spec.
  const v1::ResolveFeedResponse& info() const;
  // Whether the spec asks for it and has an output that can travel compactly (v1::Wire).
  bool can_be_compact() const;
  // Steps that may wait to be taken: W.
  int64_t window_steps() const;

  FeedClientStats stats() const;

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
