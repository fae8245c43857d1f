// What a server may send a client, and what becomes of one that sends more.
//
// gRPC 1.51 lets a server send up to the length that it announces for a message, 4 GiB at most,
// and looks at the limit only then; of headers and of frames that are for no call it takes any
// number. So the client counts, below TLS and HTTP/2, the bytes that came in on the connections of
// a link, and closes them when there are more than
//
//   what was asked for: for each call under way, what gRPC lets a server send ahead of its reader
//   + what the client has taken, an eighth of it, and 1 KiB for each message (frames, TLS)
//   + kUnaskedBytes.
//
// Reading, gRPC makes buffers of up to twice what comes, so that much memory is at stake
// (client/feed/README.md has the sum). The count is TCP's own (TCP_INFO), looked at every 10 ms:
// ReceiveWatch. "unix:" has none. There quota() bounds what gRPC holds of messages; headers, and
// frames that are for no call, are not bounded.
//
// Thread-safe.
#ifndef SYSTOLE_CLIENT_FEED_RECEIVE_METER_H_
#define SYSTOLE_CLIENT_FEED_RECEIVE_METER_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/time/time.h"
#include "core/concurrency/mutex.h"
#include "core/concurrency/worker_pool.h"
#include "grpcpp/resource_quota.h"

namespace systole {

// What a server may send that nobody has asked for, on the connections of one link together.
inline constexpr int64_t kUnaskedBytes = int64_t{16} << 20;
// The most that gRPC 1.51 lets a server send ahead of the reader of a stream: it opens a window of
// up to 2^25 bytes as the way to the server asks for it, and 1 MiB more for a message under way.
inline constexpr int64_t kStreamAheadBytes = int64_t{33} << 20;
// For buffers into which gRPC reads, in its quota.
inline constexpr int64_t kReadBufferBytes = int64_t{16} << 20;

class ReceiveMeter {
 public:
  ReceiveMeter();

  // For all channels of the link.
  const grpc::ResourceQuota& quota() const { return quota_; }
  // A socket of the link. It is watched until it is closed.
  void AddSocket(int fd) ABSL_LOCKS_EXCLUDED(mu_);

  // A message of so many bytes was taken.
  void Took(int64_t bytes) ABSL_LOCKS_EXCLUDED(mu_);
  // Counts what has come since the last look, and closes the connections if it is too much.
  void Look() ABSL_LOCKS_EXCLUDED(mu_);

 private:
  friend class MeteredCall;
  // A number can be another socket's later; the cookie cannot.
  struct Socket {
    int fd;
    uint64_t cookie;
    uint64_t received = 0;
  };

  void CallBegins(int64_t ahead_bytes) ABSL_LOCKS_EXCLUDED(mu_);
  void CallEnds(int64_t ahead_bytes) ABSL_LOCKS_EXCLUDED(mu_);
  // The server is owed nothing for bytes that it has yet to send.
  void Forgive(int64_t bytes) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  int64_t overruns() const ABSL_LOCKS_EXCLUDED(mu_);

  grpc::ResourceQuota quota_;
  mutable Mutex mu_;
  std::vector<Socket> sockets_ ABSL_GUARDED_BY(mu_);
  int64_t calls_ ABSL_GUARDED_BY(mu_) = 0;
  int64_t most_calls_ ABSL_GUARDED_BY(mu_) = 0;     // At a time, so far: the quota is for these.
  int64_t asked_bytes_ ABSL_GUARDED_BY(mu_) = 0;    // Of the calls under way.
  int64_t untaken_bytes_ ABSL_GUARDED_BY(mu_) = 0;  // Received, and neither taken nor forgiven.
  int64_t overruns_ ABSL_GUARDED_BY(mu_) = 0;       // How often the connections were closed.
};

// The time in which a call may be sent something.
class MeteredCall {
 public:
  // `ahead_bytes`: what may come before any of it is taken; kStreamAheadBytes for a stream.
  MeteredCall(std::shared_ptr<ReceiveMeter> meter, int64_t ahead_bytes);
  ~MeteredCall();
  MeteredCall(const MeteredCall&) = delete;
  MeteredCall& operator=(const MeteredCall&) = delete;

  void Took(int64_t bytes) { meter_->Took(bytes); }
  // What to say instead of `status`, with which the call has ended:
  //   Internal  the call was ended by us, because of what the server has sent.
  absl::Status Explain(absl::Status status) const;

 private:
  const std::shared_ptr<ReceiveMeter> meter_;
  const int64_t ahead_bytes_;
  const int64_t overruns_;  // At the beginning.
};

// Looks at meters every 10 ms, on a thread of its own.
class ReceiveWatch {
 public:
  ReceiveWatch();
  ~ReceiveWatch();

  // From now on, for as long as it is in use elsewhere.
  void Add(const std::shared_ptr<ReceiveMeter>& meter) ABSL_LOCKS_EXCLUDED(mu_);

 private:
  void Run() ABSL_LOCKS_EXCLUDED(mu_);

  Mutex mu_;
  CondVar wakes_;
  std::vector<std::weak_ptr<ReceiveMeter>> meters_ ABSL_GUARDED_BY(mu_);
  bool stopping_ ABSL_GUARDED_BY(mu_) = false;
  WorkerPool thread_;  // Last: it uses what is above.
};

}  // namespace systole

#endif  // SYSTOLE_CLIENT_FEED_RECEIVE_METER_H_
