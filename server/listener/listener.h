// Accepts connections of clients, hands each connection over to gRPC, and knows which connections
// are still open.
//
//   listening sockets --accept--> within the caps? --yes--> a duplicate is handed over (to gRPC)
//                                        |                          |
//                                        no: closed at once         ends: our descriptor sees it
//
// The listener closes TCP connections that send more than their calls account for, before gRPC sees
// the surplus (meter.h). On a Unix socket the listener counts no bytes, because the mode of the
// socket's file decides who connects.
//
// When the process has no descriptor left, the listener accepts a new connection with a spare
// descriptor, and closes the connection at once.
// The receiver of a connection must shut it down (shutdown(2), both ways) when done, as gRPC does.
// The listener does not notice when only the receiver's descriptor is closed.
//
// Thread-safe.
#ifndef SYSTOLE_SERVER_LISTENER_LISTENER_H_
#define SYSTOLE_SERVER_LISTENER_LISTENER_H_

#include <sys/types.h>

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "core/concurrency/monotonic_clock.h"
#include "core/concurrency/mutex.h"
#include "core/concurrency/worker_pool.h"
#include "core/descriptor/owned_fd.h"
#include "server/listener/listening_sockets.h"
#include "server/listener/meter.h"
#include "server/listener/open_calls.h"

namespace systole {

struct ListenerOptions {
  // The most connections that are open at a time. Each costs two descriptors. Further connections
  // are closed when they come.
  int64_t max_connections = 4096;
  // Most connections of one peer. A peer is an address, or on a Unix socket a user. This limit
  // stops one machine from taking every place.
  int64_t max_connections_per_peer = 2048;
  // How long the kernel goes on sending to a peer that does not acknowledge, or whose window stays
  // closed (TCP_USER_TIMEOUT). A trainer in a debugger is such a peer.
  absl::Duration silence_timeout = absl::Minutes(3);
  // Registers every TCP connection and counts its calls. EndQuiet() drops connections that have had
  // no call for `call_timeout`. The more calls of a connection are served, the more bytes it may
  // send. Null: nothing is dropped or counted. Unix connections are not registered, because a call
  // does not show to which Unix connection it belongs.
  std::shared_ptr<OpenCalls> calls;
  absl::Duration call_timeout = absl::InfiniteDuration();
  // Whether connections speak TLS, which takes more memory.
  bool tls = false;
  // Measures time. Each second raises what a connection may send (allowance.h).
  MonotonicClock clock = SteadyClock();
  // Called for every connection that is turned away or dropped. `why` is a sentence for people. The
  // call comes from the listener's thread, or from EndQuiet(). `peer` is empty if it is not known.
  // May be null.
  std::function<void(absl::string_view peer, absl::string_view why)> turned_away;
};

// Counts since the listener was opened, except `open`.
struct ListenerCounters {
  int64_t open = 0;  // Connections open now.
  int64_t let_in = 0;
  int64_t over_total = 0;     // Turned away: max_connections.
  int64_t over_peer = 0;      // Turned away: max_connections_per_peer.
  int64_t no_descriptor = 0;  // Turned away: the process or the system had no descriptor left.
  int64_t no_call = 0;        // Dropped: call_timeout.
  int64_t sent_too_much = 0;  // Dropped: sent more than its calls account for.
  int64_t cost_most = 0;      // Dropped: cost most when all connections together cost too much.
};

class Listener {
 public:
  // Gets a descriptor of the connection, non-blocking and close-on-exec, and must close it. On a
  // Unix socket the function also gets the peer's user, which the kernel told the listener. The
  // function is called for one connection at a time. It has a thread of its own, because gRPC may
  // read from the connection before the function returns. TLS must begin before the function
  // returns. The function must not call the listener.
  using HandOver = std::function<void(int connection, std::optional<uid_t> user)>;

  // InvalidArgument if a cap is below 1; Internal if `options.calls` is set but reads cannot be
  // seen (read_observer.h); another code if the system refuses a descriptor.
  static absl::StatusOr<std::unique_ptr<Listener>> Open(ListeningSockets listeners,
                                                        ListenerOptions options,
                                                        HandOver hand_over);
  // Stops listening. Connections stay open.
  ~Listener();
  Listener(const Listener&) = delete;
  Listener& operator=(const Listener&) = delete;

  // Closes the listening sockets. After this nothing is handed over. Returns at once if called
  // again.
  void StopListening() ABSL_LOCKS_EXCLUDED(mu_);
  // Ends every connection that is open, whatever its owner and its peer are doing.
  void HangUp() ABSL_LOCKS_EXCLUDED(mu_);
  // Ends connections that have had no call for too long. Call it about once a second.
  void EndQuiet() ABSL_LOCKS_EXCLUDED(mu_);

  ListenerCounters counters() const ABSL_LOCKS_EXCLUDED(mu_);

 private:
  struct Connection {
    OwnedFd own;
    std::string peer;
    std::string address;
    std::shared_ptr<OpenCalls::Connection> calls;  // Null on a Unix socket.
    bool ended = false;                            // The listener itself has ended the connection.
  };

  Listener(ListeningSockets listeners, ListenerOptions options, HandOver hand_over, OwnedFd epoll,
           OwnedFd wake);
  // These run on the listener's thread.
  void Run();
  void Handle(int fd, uint32_t events);
  void Accept(int listener);
  void LetIn(OwnedFd connection);
  // Hands over the waiting connections that may come in.
  void HandOverWaiting() ABSL_LOCKS_EXCLUDED(mu_);
  void HandOverOne(int own, std::optional<uid_t> user) ABSL_LOCKS_EXCLUDED(mu_);
  bool HasRoomFor(const std::string& peer) ABSL_LOCKS_EXCLUDED(mu_);
  // Accepts a connection with the spare descriptor and closes it. False: there was no spare.
  bool TurnAway(int listener);
  void TellNoDescriptor(int error) ABSL_LOCKS_EXCLUDED(mu_);
  // Ends the connections that the meter has closed.
  void DropExcess() ABSL_LOCKS_EXCLUDED(mu_);
  void Forget(int own) ABSL_LOCKS_EXCLUDED(mu_);
  bool IsStopping() const ABSL_LOCKS_EXCLUDED(mu_);
  void CloseListeners() ABSL_LOCKS_EXCLUDED(mu_);
  void Listen(bool on);

  enum class Listening { kYes, kStopping, kNo };

  const ListenerOptions options_;
  const HandOver hand_over_;
  const OwnedFd epoll_;
  // Readable when `listening_` or `ending_` has changed, or the meter has closed a connection.
  const std::shared_ptr<const OwnedFd> wake_;
  // Only the listener's thread uses these.
  ListeningSockets listeners_;
  OwnedFd spare_;
  bool paused_ = false;  // The listeners are not watched for a moment.
  const std::shared_ptr<Meter> meter_;
  // Accepted connections that are not handed over yet (Meter::MayComeIn), by peer, oldest first.
  std::map<std::string, std::deque<int>> waiting_;
  std::string last_in_;  // The peer that was let in last.

  mutable Mutex mu_;
  CondVar changed_;
  Listening listening_ ABSL_GUARDED_BY(mu_) = Listening::kYes;
  bool ending_ ABSL_GUARDED_BY(mu_) = false;
  int64_t handing_over_ ABSL_GUARDED_BY(mu_) = 0;               // Unfinished `hand_over_` calls.
  std::map<int, Connection> connections_ ABSL_GUARDED_BY(mu_);  // By our own descriptor.
  std::map<std::string, int64_t> peers_ ABSL_GUARDED_BY(mu_);   // The number of open connections.
  ListenerCounters counters_ ABSL_GUARDED_BY(mu_);
  WorkerPool hand_over_thread_{1};  // The threads come last: they use the members above.
  WorkerPool thread_{1};
};

}  // namespace systole

#endif  // SYSTOLE_SERVER_LISTENER_LISTENER_H_
