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
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "client/feed/feed_watch.h"
#include "client/feed/step.h"
#include "core/batch/slice_layout.h"
#include "core/order/resume_token.h"
#include "systole/v1/feed.pb.h"
#include "systole/v1/service.pb.h"

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

// Masked records that are listed.
inline constexpr size_t kMaxMaskedRecords = 100;

// Counted since Create().
struct FeedClientStats {
  // Bytes of tensors as they travelled, those received twice counted twice.
  int64_t payload_bytes = 0;
  // What of it came through shared memory; the rest came by the stream.
  int64_t shared_payload_bytes = 0;
  // Why a server with a "unix:PATH" address first sent what it could have shared, and which one;
  // empty if none did.
  std::string not_shared;
  // Steps that were received in full, and the bytes of their tensors as Next() hands them out.
  int64_t steps_received = 0;
  int64_t delivered_bytes = 0;
  // Those of them that travelled compactly, and how often lanes changed the form (v1::Wire).
  int64_t compact_steps = 0;
  int64_t wire_changes = 0;
  // Times a lane lost its server to an error, a drain or silence, vain attempts included.
  int64_t streams_lost = 0;
  // Of the steps that Next() has returned, each counted once: examples that are zeros because their
  // record is damaged and the spec says MASK, and places behind an epoch's last record, with PAD.
  // `valid` is 0 in both.
  int64_t masked_examples = 0;
  int64_t padded_examples = 0;
  // The record_id of the first masked records, at most kMaxMaskedRecords, each once, in the order
  // they were met. The servers log, and tell by ServerStatus, in which shard they are.
  std::vector<int64_t> masked_records;
  // What was damaged on the way, found by a checksum and fetched or sent again: chunks, requests
  // (as servers say) and answers to ResolveFeed. Each is a stream lost as well.
  int64_t damaged_chunks = 0;
  int64_t damaged_requests = 0;
  int64_t damaged_answers = 0;
};

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
