// Lets clients in: accepts connections, hands each one over, and knows which are still open.
//
//   listening sockets --accept--> within the caps? --yes--> a duplicate is handed over (to gRPC)
//                                        |                          |
//                                        no: closed at once         ends: our own descriptor sees it
//
// It goes on when the process has no descriptor left: a spare one takes the connection in, to close
// it. Whoever gets a connection must shut it down (shutdown(2), both ways) when done with it, as
// gRPC does. Closing its descriptor alone does not show on ours.
//
// Thread-safe.
#ifndef SYSTOLE_SERVER_DOOR_DOOR_H_
#define SYSTOLE_SERVER_DOOR_DOOR_H_

#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "core/concurrency/mutex.h"
#include "core/concurrency/worker_pool.h"
#include "core/descriptor/owned_fd.h"
#include "server/door/listening_sockets.h"
#include "server/door/open_calls.h"

namespace systole {

struct DoorOptions {
  // Most connections at once; each costs two descriptors. A further one is closed at once.
  int64_t max_connections = 4096;
  // The same for one peer: an address, or on a Unix socket a user. Stops one machine from taking
  // every place.
  int64_t max_connections_per_peer = 2048;
  // How long the kernel goes on sending to a peer that does not acknowledge, or whose window stays
  // closed (TCP_USER_TIMEOUT). A trainer in a debugger is such a peer.
  absl::Duration silence_timeout = absl::Minutes(3);
  // Told of every connection over TCP. Those that have had no call for `call_timeout` are dropped
  // by EndQuiet(). Null: none is. On a Unix socket a call does not tell its connection, so none is
  // there.
  std::shared_ptr<OpenCalls> calls;
  absl::Duration call_timeout = absl::InfiniteDuration();
  // Told in a sentence of every connection that is turned away, on the door's thread, or dropped,
  // on the caller's. `peer` is empty if it is not known. May be null.
  std::function<void(absl::string_view peer, absl::string_view why)> turned_away;
};

// Since the door was opened, but for `open`.
struct DoorCounters {
  int64_t open = 0;  // Now.
  int64_t let_in = 0;
  int64_t over_total = 0;     // Turned away: max_connections.
  int64_t over_peer = 0;      // Turned away: max_connections_per_peer.
  int64_t no_descriptor = 0;  // Turned away: the process or the system had no descriptor left.
  int64_t no_call = 0;        // Dropped: call_timeout.
};

class Door {
 public:
  // Gets a descriptor of each connection, which it must close: non-blocking, and closed on exec;
  // and on a Unix socket the peer's user, as the kernel knows it. Called on the door's thread. Must
  // not call the door.
  using HandOver = std::function<void(int connection, std::optional<uid_t> user)>;

  // InvalidArgument if a cap is below 1; another code if the system refuses a descriptor.
  static absl::StatusOr<std::unique_ptr<Door>> Open(ListeningSockets listeners, DoorOptions options,
                                                    HandOver hand_over);
  // Stops listening. Connections stay open.
  ~Door();
  Door(const Door&) = delete;
  Door& operator=(const Door&) = delete;

  // Closes the listening sockets. After this nothing is handed over. Returns at once if called
  // again.
  void StopListening() ABSL_LOCKS_EXCLUDED(mu_);
  // Ends every connection that is open, whatever its owner and its peer are doing.
  void HangUp() ABSL_LOCKS_EXCLUDED(mu_);
  // Ends those that have had no call for too long. To be called each second or so.
  void EndQuiet() ABSL_LOCKS_EXCLUDED(mu_);

  DoorCounters counters() const ABSL_LOCKS_EXCLUDED(mu_);

 private:
  struct Connection {
    OwnedFd own;
    std::string peer;
    std::string address;
    std::shared_ptr<OpenCalls::Connection> calls;  // Null where calls do not tell it.
    bool ended = false;                            // By EndQuiet().
  };

  Door(ListeningSockets listeners, DoorOptions options, HandOver hand_over, OwnedFd epoll,
       OwnedFd wake);
  // These run on the door's thread.
  void Run();
  void Handle(int fd, uint32_t events);
  void Accept(int listener);
  void LetIn(OwnedFd connection);
  bool HasRoomFor(const std::string& peer) ABSL_LOCKS_EXCLUDED(mu_);
  // Takes a connection in by the spare descriptor and closes it. False: there was no spare.
  bool TurnAway(int listener);
  void TellNoDescriptor(int error) ABSL_LOCKS_EXCLUDED(mu_);
  void Forget(int own) ABSL_LOCKS_EXCLUDED(mu_);
  void CloseListeners() ABSL_LOCKS_EXCLUDED(mu_);
  void Listen(bool on);

  enum class Listening { kYes, kStopping, kNo };

  const DoorOptions options_;
  const HandOver hand_over_;
  const OwnedFd epoll_;
  const OwnedFd wake_;  // Readable when `listening_` or `ending_` has changed.
  // Only the door's thread uses these.
  ListeningSockets listeners_;
  OwnedFd spare_;
  bool paused_ = false;  // The listeners are not watched for a moment.

  mutable Mutex mu_;
  CondVar changed_;
  Listening listening_ ABSL_GUARDED_BY(mu_) = Listening::kYes;
  bool ending_ ABSL_GUARDED_BY(mu_) = false;
  std::map<int, Connection> connections_ ABSL_GUARDED_BY(mu_);  // By `own`.
  std::map<std::string, int64_t> peers_ ABSL_GUARDED_BY(mu_);   // Open connections of each.
  DoorCounters counters_ ABSL_GUARDED_BY(mu_);
  WorkerPool thread_{1};  // Last: it uses what is above.
};

}  // namespace systole

#endif  // SYSTOLE_SERVER_DOOR_DOOR_H_
