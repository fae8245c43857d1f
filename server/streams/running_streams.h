// The running streams of this server. Each has one of max_streams places. RunningStreams shares the
// places between peers, and lets other threads end streams.
//
// While a place is free, any peer gets it. When all places are taken, the peer that asks is
// compared with the peer that has the most places. If the peer that asks has at least two places
// fewer, it gets the newest place of the other peer, and the stream in this place ends. So:
//   * a peer without a place is refused only if no peer has two or more places. So no peer can keep
//     others out.
//   * a peer that has fewer places than its share always gets another place. The share is
//     max_streams divided by the number of peers, including this peer, and rounded down. The other
//     peers have more than the share on average. So one of them has more places than the share, and
//     at least two places more than this peer.
//   * places do not go to and fro. Let k be the number of places of the peer that asks, and l that
//     of the other peer. As l >= k + 2, (k + 1)^2 + (l - 1)^2 < k^2 + l^2. So each exchange makes
//     the sum of the squares of all peers' numbers of places smaller.
//   * a peer that is alone can have all places.
//
// Thread-safe.
#ifndef SYSTOLE_SERVER_STREAMS_RUNNING_STREAMS_H_
#define SYSTOLE_SERVER_STREAMS_RUNNING_STREAMS_H_

#include <cstdint>
#include <list>
#include <memory>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "core/concurrency/mutex.h"
#include "core/plan/feed_plan.h"
#include "server/access/access_policy.h"
#include "server/streams/stream_handle.h"
#include "server/streams/stream_snapshot.h"
#include "server/streams/trainer_waits.h"

namespace systole {

struct RunningStream {
  // The peer that the place counts for: an identity, or a machine.
  std::string peer;
  Credentials credentials;
  // The datasets that the stream reads; a mixture has several.
  std::vector<std::string> datasets;
  std::shared_ptr<StreamHandle> handle;
  // The following fields are shown to people. A stream without a plan is not shown.
  std::string client = "";   // As the log names it.
  std::string dataset = "";  // All `datasets`, fit to print.
  std::shared_ptr<const FeedPlan> plan = nullptr;
  // The number that the client gave its trainer. 0: the client gave no number.
  uint64_t trainer = 0;
};

class RunningStreams {
 public:
  explicit RunningStreams(int max_streams) : max_streams_(max_streams) {}

  // Takes a place for the stream. False: there is no place for its peer. May end another peer's
  // stream, with Unavailable.
  bool Add(RunningStream stream) ABSL_LOCKS_EXCLUDED(mu_);
  // Gives the stream's place back, if it still has one.
  void Remove(const StreamHandle& handle) ABSL_LOCKS_EXCLUDED(mu_);

  // How many places are free.
  int free_places() const ABSL_LOCKS_EXCLUDED(mu_);

  // Ends the streams whose client has taken nothing for `timeout`, with Unavailable.
  void StopStalled(absl::Duration timeout) ABSL_LOCKS_EXCLUDED(mu_);

  // Ends each stream for which `check` returns an error, with this error.
  void StopUnless(absl::FunctionRef<absl::Status(const RunningStream&)> check)
      ABSL_LOCKS_EXCLUDED(mu_);

  // Whether the peer has a stream whose client gave its trainer this number.
  bool Has(absl::string_view peer, uint64_t trainer) const ABSL_LOCKS_EXCLUDED(mu_);

  // The streams that have begun and for which `wanted` is true, with their clients' reports from
  // `waits`. Streams whose trainers wait most come first, and streams without a report come last.
  // Of streams with equal waits, the oldest comes first. `wanted` must not use this object.
  StreamSnapshots Snapshot(const TrainerWaits& waits,
                           absl::FunctionRef<bool(const RunningStream&)> wanted) const
      ABSL_LOCKS_EXCLUDED(mu_);

 private:
  const int max_streams_;
  mutable Mutex mu_;
  // Oldest first.
  std::list<RunningStream> streams_ ABSL_GUARDED_BY(mu_);
};

}  // namespace systole

#endif  // SYSTOLE_SERVER_STREAMS_RUNNING_STREAMS_H_
