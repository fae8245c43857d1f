// Accepts connections of clients, and hands each connection to a receiver, which is gRPC. The
// listener closes a new connection at once if there are too many, or if the process has no
// descriptor left. (For this case the listener keeps a spare descriptor.)
//
// The receiver gets a duplicate of the connection's descriptor. Through its own descriptor the
// listener sees that the connection has ended, and can end it. When the receiver is done with a
// connection, it must call shutdown(2) for both directions, as gRPC does. If the receiver only
// closes its descriptor, the listener does not notice.
//
// The listener also closes TCP connections that send more than their calls account for. gRPC does
// not see the surplus (meter.h). On a Unix socket the listener counts no bytes, because the mode of
// the socket's file decides who may connect.
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
  // The most connections that are open at a time. A connection takes two descriptors.
  int64_t max_connections = 4096;
  // The most connections of one peer, so that one machine cannot take all places. A peer is an
  // address or, on a Unix socket, a user.
  int64_t max_connections_per_peer = 2048;
  // The kernel ends a connection if the peer acknowledges nothing, or keeps its TCP window closed,
  // for this long (TCP_USER_TIMEOUT). A trainer that stands still in a debugger is such a peer.
  absl::Duration silence_timeout = absl::Minutes(3);
  // Counts the calls of each TCP connection. EndQuiet() drops connections that have had no call for
  // `call_timeout`. The more calls of a connection are served, the more bytes it may send. Null:
  // calls and bytes are not counted, and no connection is dropped. Calls on Unix sockets are never
  // counted, because a call does not show to which Unix connection it belongs.
  std::shared_ptr<OpenCalls> calls;
  absl::Duration call_timeout = absl::InfiniteDuration();
  // Whether connections use TLS. A TLS connection takes more memory (allowance.h).
  bool tls = false;
  // For all times. With each second a connection may send more (allowance.h).
  MonotonicClock clock = SteadyClock();
  // Called for every connection that is turned away (closed at once) or dropped (closed later).
  // `peer` is empty if it is not known. `why` is a sentence for people. The function is called on
  // the listener's thread, and by EndQuiet() on its caller's thread. May be null.
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
  int64_t cost_most = 0;      // Dropped: all connections together cost too much (allowance.h).
};

class Listener {
 public:
  // Hands a connection to gRPC. Gets a descriptor of the connection, and must close the descriptor,
  // which is non-blocking and close-on-exec. On a Unix socket the function also gets the peer's
  // user, as the kernel reports it. The function is called for one connection at a time. It has a
  // thread of its own, because gRPC may read from the connection before the function returns. If
  // the connection uses TLS, its SSL object must be made before the function returns (see
  // HandedOver). The function must not call the listener.
  using HandOver = std::function<void(int connection, std::optional<uid_t> user)>;

  //   InvalidArgument  a limit on the number of connections is below 1.
  //   Internal         `options.calls` is set, but what gRPC reads cannot be seen
  //                    (CheckReadsAreSeen()).
  //   other codes      a call of the system fails, such as for lack of descriptors.
  static absl::StatusOr<std::unique_ptr<Listener>> Open(ListeningSockets listeners,
                                                        ListenerOptions options,
                                                        HandOver hand_over);
  // Stops listening. Connections stay open.
  ~Listener();
  Listener(const Listener&) = delete;
  Listener& operator=(const Listener&) = delete;

  // Closes the listening sockets. After this no connection is handed over. A second call does
  // nothing.
  void StopListening() ABSL_LOCKS_EXCLUDED(mu_);
  // Ends all open connections, whatever their receiver and their peers are doing.
  void HangUp() ABSL_LOCKS_EXCLUDED(mu_);
  // Ends connections that have had no call for `call_timeout`. Call it about once a second.
  void EndQuiet() ABSL_LOCKS_EXCLUDED(mu_);

  ListenerCounters counters() const ABSL_LOCKS_EXCLUDED(mu_);

 private:
  struct Connection {
    OwnedFd own;
    std::string peer;
    std::string address;
    std::shared_ptr<OpenCalls::Connection> calls;  // Null: its calls are not counted.
    bool ended = false;                            // The listener itself has ended the connection.
  };

  Listener(ListeningSockets listeners, ListenerOptions options, HandOver hand_over, OwnedFd epoll,
           OwnedFd wake);
  // These run on the listener's thread.
  void Run();
  void Handle(int fd, uint32_t events);
  void Accept(int listener);
  void LetIn(OwnedFd connection);
  // Hands over those connections of `waiting_` that may come in now.
  void HandOverWaiting() ABSL_LOCKS_EXCLUDED(mu_);
  void HandOverOne(int own, std::optional<uid_t> user) ABSL_LOCKS_EXCLUDED(mu_);
  bool HasRoomFor(const std::string& peer) ABSL_LOCKS_EXCLUDED(mu_);
  // Accepts a connection with the spare descriptor, and closes the connection. False: this failed.
  bool TurnAway(int listener);
  void TellNoDescriptor(int error) ABSL_LOCKS_EXCLUDED(mu_);
  // Ends the connections of Meter::TakeExcess().
  void DropExcess() ABSL_LOCKS_EXCLUDED(mu_);
  void Forget(int own) ABSL_LOCKS_EXCLUDED(mu_);
  bool IsStopping() const ABSL_LOCKS_EXCLUDED(mu_);
  void CloseListeners() ABSL_LOCKS_EXCLUDED(mu_);
  void Listen(bool on);

  enum class Listening { kYes, kStopping, kNo };

  const ListenerOptions options_;
  const HandOver hand_over_;
  const OwnedFd epoll_;
  // Wakes the listener's thread: `listening_` or `ending_` has changed, or the meter has a
  // connection to close.
  const std::shared_ptr<const OwnedFd> wake_;
  // Only the listener's thread uses the members from here to `last_in_`.
  ListeningSockets listeners_;
  OwnedFd spare_;
  bool paused_ = false;  // The listening sockets are not watched now, but soon again.
  const std::shared_ptr<Meter> meter_;
  // Accepted connections that wait for Meter::MayComeIn(), by peer. A peer's oldest comes first.
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
  // The threads come last, because they use the members above.
  WorkerPool hand_over_thread_{1};
  WorkerPool thread_{1};
};

}  // namespace systole

#endif  // SYSTOLE_SERVER_LISTENER_LISTENER_H_
