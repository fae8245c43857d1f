// Shares memory with clients of the same machine. A slot is a piece of shared memory that holds one
// slice. SlotServer listens at a second Unix socket beside the server's own (proto/slots). It finds
// the connection that belongs to a stream, and receives the slots that clients return.
//
// Thread-safe.
#ifndef SYSTOLE_SERVER_SLOTS_SLOT_SERVER_H_
#define SYSTOLE_SERVER_SLOTS_SLOT_SERVER_H_

#include <cstddef>
#include <cstdint>
#include <list>
#include <memory>
#include <optional>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "core/concurrency/descriptor_poller.h"
#include "core/concurrency/monotonic_clock.h"
#include "core/concurrency/mutex.h"
#include "proto/slots/slot_socket.h"
#include "server/slots/slot_session.h"

namespace systole {

// How many slots a process should have if it may open `open_files` descriptors (RLIMIT_NOFILE): a
// quarter of this number, and kMaxSlots at most. Each slot takes a descriptor, and a server without
// a free descriptor cannot accept a connection.
int MaxSlotsFor(uint64_t open_files);

// The most clients that may be connected and have not asked for a stream yet. If there are more,
// the server hangs up on the client that has waited longest.
inline constexpr size_t kMaxGuests = 256;

struct SlotServerOptions {
  // The most sessions (SlotSession) at a time. Each session costs a descriptor, and the memory that
  // is lent to its client. Further clients get their slices as bytes.
  int max_sessions = 256;
  // See SlotAccount.
  int64_t max_lent_bytes = int64_t{1} << 29;
  MonotonicClock clock = SteadyClock();
};

class SlotServer {
 public:
  // Listens at `path`. Errors of SlotListener::Listen(), or of starting a thread.
  static absl::StatusOr<std::unique_ptr<SlotServer>> Listen(const std::string& path,
                                                            const SlotServerOptions& options);
  // Hangs up on every client whose session no stream holds any more.
  ~SlotServer();
  SlotServer(const SlotServer&) = delete;
  SlotServer& operator=(const SlotServer&) = delete;

  // The session of a client that has sent a SlotHello with the id `session` and now asks for a
  // stream. Returns each session only once. Returns no session for an id that was claimed before,
  // for an id that no client has sent, and if there is no room for the client. Never waits, because
  // a client connects before it asks for its stream.
  StreamSlots Claim(absl::string_view session) ABSL_LOCKS_EXCLUDED(mu_);

  // Accepts clients that have connected, and forgets clients that have gone. Claim() does the same.
  // Call LetIn() when a request names no session. Its client may have failed to connect because the
  // socket's queue was full, and LetIn() empties the queue for the next clients.
  void LetIn() ABSL_LOCKS_EXCLUDED(mu_);

  // Hangs up on the clients that have held slots for `timeout` and given none back, whether or not
  // a stream still uses their sessions.
  void HangUpOnStalled(absl::Duration timeout) ABSL_LOCKS_EXCLUDED(mu_);

  int64_t sessions() const { return account_->sessions; }
  int64_t lent_bytes() const { return account_->lent_bytes; }

 private:
  // A client that has connected and not yet asked for its stream.
  struct Guest {
    SlotSocket socket;
    std::optional<std::string> session;  // Set once the client has said hello.
  };

  SlotServer(SlotListener listener, std::unique_ptr<DescriptorPoller> poller,
             const SlotServerOptions& options);
  // Accepts clients. False: a client may still wait, because there was no descriptor for its
  // connection.
  bool LetInLocked() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // Reads the guest's hello, if it has come. False: the guest is gone, or breaks the protocol.
  static bool Hear(Guest& guest);

  const SlotServerOptions options_;
  const std::shared_ptr<SlotAccount> account_;
  Mutex mu_;
  const SlotListener listener_;
  std::list<Guest> guests_ ABSL_GUARDED_BY(mu_);  // Longest waiting first.
  // Sessions that Claim() has returned; some may be over.
  std::list<std::weak_ptr<SlotSession>> claimed_ ABSL_GUARDED_BY(mu_);
  // Declared last, because its handlers hold sessions and use the fields above.
  std::unique_ptr<DescriptorPoller> poller_;
};

}  // namespace systole

#endif  // SYSTOLE_SERVER_SLOTS_SLOT_SERVER_H_
