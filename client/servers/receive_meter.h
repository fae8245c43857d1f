// Bounds how many bytes a server may send a client. If a server sends more, its connections are
// closed.
//
// gRPC 1.51 buffers a whole message, up to the 4 GiB that a server can announce, before it compares
// the size with its limit. It also takes any number of headers, and any number of frames that
// belong to no call. So the client counts, below TLS and HTTP/2, the bytes that came in on the
// connections of a link (server_link.h). It closes these connections when the bytes exceed the sum
// of
//
//   asked for: for each call under way, the most that gRPC lets a server send before the client
//              reads, and 64 KiB for headers
//   taken:     the messages that the client has taken, plus an eighth of their bytes, plus 1 KiB
//              for each message (frames, TLS)
//   unasked:   kUnaskedBytes, and 2 KiB for each second (pings).
//
// An honest server never sends more, however slow the client, the network or this count is. If the
// client gives up a call, the call counts as under way while the server may not know of its end.
//
// The kernel counts the bytes of a TCP socket (TCP_INFO), and ReceiveWatch reads the counts every
// 10 ms. "unix:" sockets have no such count, so there nothing is bounded. client/servers/README.md
// adds up the memory.
//
// Thread-safe.
#ifndef SYSTOLE_CLIENT_SERVERS_RECEIVE_METER_H_
#define SYSTOLE_CLIENT_SERVERS_RECEIVE_METER_H_

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/time/time.h"
#include "core/concurrency/monotonic_clock.h"
#include "core/concurrency/mutex.h"
#include "core/concurrency/worker_pool.h"
#include "proto/framing/chunk.h"

namespace systole {

// How many bytes a server may send beyond what was asked for, over all connections of a link.
inline constexpr int64_t kUnaskedBytes = int64_t{16} << 20;
// The most that gRPC 1.51 lets a server send on a stream before the client reads. This is a window
// of up to 2^25 bytes, 1 MiB more while a message is read, and that message. The window grows with
// the bandwidth and delay of the connection.
inline constexpr int64_t kStreamAheadBytes = (int64_t{33} << 20) + kMaxChunkMessageBytes;

class ReceiveMeter {
 public:
  // `clock` measures the seconds for which pings are allowed.
  explicit ReceiveMeter(MonotonicClock clock = SteadyClock());

  // Adds a socket of the link. The socket is watched until it is closed.
  void AddSocket(int fd) ABSL_LOCKS_EXCLUDED(mu_);
  // Counts the bytes since the last Look(), and closes the connections if too many have come.
  void Look() ABSL_LOCKS_EXCLUDED(mu_);

 private:
  friend class MeteredCall;
  // Another socket can have the same descriptor later, but never the same cookie.
  struct Socket {
    int fd;
    uint64_t cookie;
    uint64_t received = 0;
  };
  // A call that was given up before the server had ended it.
  struct GivenUp {
    uint64_t at;  // Calls that begin later have this number or a higher one.
    int64_t ahead_bytes;
  };

  // Returns the call's number.
  uint64_t CallBegins(int64_t ahead_bytes) ABSL_LOCKS_EXCLUDED(mu_);
  void CallTook(uint64_t number, int64_t bytes) ABSL_LOCKS_EXCLUDED(mu_);
  // `given_up`: the server may not know yet that the call has ended, and may go on sending.
  void CallEnds(int64_t ahead_bytes, bool given_up) ABSL_LOCKS_EXCLUDED(mu_);
  // The server sends nothing more for a call. The bytes that it was allowed to send for the call
  // count as accounted for from now on, whether or not they came.
  void Settle(int64_t ahead_bytes) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  int64_t overruns() const ABSL_LOCKS_EXCLUDED(mu_);

  const MonotonicClock clock_;
  mutable Mutex mu_;
  std::vector<Socket> sockets_ ABSL_GUARDED_BY(mu_);
  uint64_t begun_ ABSL_GUARDED_BY(mu_) = 0;            // Calls begun so far.
  size_t open_ ABSL_GUARDED_BY(mu_) = 0;               // Calls that have not ended.
  size_t most_open_ ABSL_GUARDED_BY(mu_) = 0;          // The highest open_ so far.
  std::deque<GivenUp> given_up_ ABSL_GUARDED_BY(mu_);  // In the order of `at`.
  int64_t asked_bytes_ ABSL_GUARDED_BY(mu_) = 0;       // For the calls under way.
  // Bytes received up to the last look, less those that were accounted for by then.
  int64_t unaccounted_bytes_ ABSL_GUARDED_BY(mu_) = 0;
  int64_t accounted_bytes_ ABSL_GUARDED_BY(mu_) = 0;  // Taken or settled since the last look.
  absl::Duration idle_until_ ABSL_GUARDED_BY(mu_);
  int64_t overruns_ ABSL_GUARDED_BY(mu_) = 0;  // How often the connections were closed.
};

// A call that the meter counts, from the constructor to End(). A call counts as given up if it ends
// with Cancelled or DeadlineExceeded, or is destroyed without End().
class MeteredCall {
 public:
  // `ahead_bytes`: the bytes that may come before the first message is taken; kStreamAheadBytes for
  // a stream.
  MeteredCall(std::shared_ptr<ReceiveMeter> meter, int64_t ahead_bytes);
  ~MeteredCall();
  MeteredCall(const MeteredCall&) = delete;
  MeteredCall& operator=(const MeteredCall&) = delete;

  // The client has taken a message of `bytes` bytes.
  void Took(int64_t bytes) { meter_->CallTook(number_, bytes); }
  // The call has ended with `status`. Call this at most once. Returns `status` or, instead of it,
  //   Internal  the meter ended the call, because the server sent too much.
  absl::Status End(absl::Status status);

 private:
  const std::shared_ptr<ReceiveMeter> meter_;
  const int64_t ahead_bytes_;
  const int64_t overruns_;  // The meter's overruns() when the call began.
  const uint64_t number_;
  bool ended_ = false;
};

// Looks at meters every 10 ms, on a thread of its own.
class ReceiveWatch {
 public:
  ReceiveWatch();
  ~ReceiveWatch();

  // Watches `meter` from now on, until nothing else holds a reference to it.
  void Add(const std::shared_ptr<ReceiveMeter>& meter) ABSL_LOCKS_EXCLUDED(mu_);

 private:
  void Run() ABSL_LOCKS_EXCLUDED(mu_);

  Mutex mu_;
  CondVar wakes_;
  std::vector<std::weak_ptr<ReceiveMeter>> meters_ ABSL_GUARDED_BY(mu_);
  bool stopping_ ABSL_GUARDED_BY(mu_) = false;
  WorkerPool thread_;  // Declared last, because the thread uses the members above.
};

}  // namespace systole

#endif  // SYSTOLE_CLIENT_SERVERS_RECEIVE_METER_H_
