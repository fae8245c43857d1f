// The streams that have a place on this server, by the peer that each is served to: shares the
// places out, and ends streams from outside.
//
// How places are shared: while one is free, whoever asks has it. When all are taken, a peer that
// has at least two fewer than the peer with the most gets the newest of that peer's places, whose
// stream ends. So
//   * a newcomer is refused only if nobody has two places: a peer cannot keep others out.
//   * a peer that has fewer than max_streams / peers (itself among them) always gets another: the
//     other peers have more than that on average, so one has at least two more than it.
//   * nothing goes to and fro: each such exchange makes the sum of the squares of what peers have
//     smaller, as (k + 1)^2 + (l - 1)^2 < k^2 + l^2 if l >= k + 2.
//   * a peer that is alone has all of them.
//
// Thread-safe.
#ifndef SYSTOLE_SERVER_STREAMS_RUNNING_STREAMS_H_
#define SYSTOLE_SERVER_STREAMS_RUNNING_STREAMS_H_

#include <cstddef>
#include <list>
#include <memory>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/time/time.h"
#include "core/concurrency/mutex.h"
#include "server/access/access_policy.h"
#include "server/streams/stream_handle.h"

namespace systole {

struct RunningStream {
  // Whose place it takes: an identity, or a machine.
  std::string peer;
  Credentials credentials;
  // All that it reads: a mixture has several.
  std::vector<std::string> datasets;
  std::shared_ptr<StreamHandle> handle;
};

class RunningStreams {
 public:
  explicit RunningStreams(int max_streams) : max_streams_(max_streams) {}

  // Takes a place. False: there is none for this peer. May end another peer's stream, with
  // Unavailable.
  bool Add(RunningStream stream) ABSL_LOCKS_EXCLUDED(mu_);
  // Gives the stream's place back. Nothing happens if it has none any more.
  void Remove(const StreamHandle& handle) ABSL_LOCKS_EXCLUDED(mu_);

  // Ends the streams whose client has taken nothing for `timeout`, with Unavailable.
  void StopStalled(absl::Duration timeout) ABSL_LOCKS_EXCLUDED(mu_);

  // Ends the streams for which `check` has an error, with that error.
  void StopUnless(absl::FunctionRef<absl::Status(const RunningStream&)> check)
      ABSL_LOCKS_EXCLUDED(mu_);

 private:
  const int max_streams_;
  Mutex mu_;
  // In the order in which they came.
  std::list<RunningStream> streams_ ABSL_GUARDED_BY(mu_);
};

}  // namespace systole

#endif  // SYSTOLE_SERVER_STREAMS_RUNNING_STREAMS_H_
