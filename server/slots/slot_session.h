// The connection over which this server shares memory with one client. The server lends slots. The
// client returns them by messages. When the connection ends, all lent slots come back.
//
//   the pool's memory --Lend()--> lent to the client --SlotReturn--> the pool's again
//                                         \_____ the connection ends _____/
//
// Thread-safe.
#ifndef SYSTOLE_SERVER_SLOTS_SLOT_SESSION_H_
#define SYSTOLE_SERVER_SLOTS_SLOT_SESSION_H_

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/time/time.h"
#include "core/concurrency/monotonic_clock.h"
#include "core/concurrency/mutex.h"
#include "core/memory/sealed_memory.h"
#include "proto/slots/slot_socket.h"
#include "systole/v1/slots.pb.h"

namespace systole {

// What all sessions of a server have in common.
struct SlotAccount {
  // The most bytes that all clients together may hold. A client that returns no slots keeps its
  // slots until HangUpIfStalled(). Because of the limit, such a client cannot take the whole memory
  // budget.
  int64_t max_lent_bytes = 0;
  // Measures stalls.
  MonotonicClock clock = SteadyClock();
  std::atomic<int64_t> lent_bytes = 0;
  std::atomic<int64_t> sessions = 0;
};

class SlotSession {
 public:
  SlotSession(SlotSocket socket, std::shared_ptr<SlotAccount> account);
  // Hangs up.
  ~SlotSession();
  SlotSession(const SlotSession&) = delete;
  SlotSession& operator=(const SlotSession&) = delete;

  // Lends `memory`, whose id() is the slot's number, to the client. Keeps `owner` until the client
  // has given the memory back or is gone. Drops `owner` while no lock is held. Returns NO_REASON if
  // the memory is lent. Otherwise returns the reason, and the caller must send the slice's bytes.
  // REQUIRES: the memory is not lent already.
  v1::NotShared Lend(const std::shared_ptr<const SealedMemory>& memory,
                     std::shared_ptr<const void> owner) ABSL_LOCKS_EXCLUDED(mu_);

  // Takes one message of the client, if there is one. False: the session is over, because the
  // client is gone or broke the protocol (such as by returning a slot that it does not hold).
  bool TakeMessage() ABSL_LOCKS_EXCLUDED(mu_);

  // How long the client has held slots and given none back; zero if it holds none. Once
  // HangUpIfStalled() has hung up, the result is infinite and stays so.
  absl::Duration stalled() const ABSL_LOCKS_EXCLUDED(mu_);

  // Hangs up if stalled() is `timeout` or more. Then all slots that the client holds come back.
  void HangUpIfStalled(absl::Duration timeout) ABSL_LOCKS_EXCLUDED(mu_);

  int fd() const { return socket_.fd(); }

 private:
  struct Lent {
    std::shared_ptr<const void> owner;
    int64_t bytes = 0;
  };
  // Sends the client the memory's descriptor, if the client does not have it yet. Also sends the
  // numbers of slots that the client may unmap. Returns NO_REASON if the client has the descriptor
  // now.
  v1::NotShared Offer(const std::shared_ptr<const SealedMemory>& memory)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void Close() ABSL_LOCKS_EXCLUDED(mu_);
  absl::Duration StalledLocked() const ABSL_SHARED_LOCKS_REQUIRED(mu_);

  const SlotSocket socket_;
  const std::shared_ptr<SlotAccount> account_;
  mutable Mutex mu_;
  bool closed_ ABSL_GUARDED_BY(mu_) = false;
  bool hung_up_on_stall_ ABSL_GUARDED_BY(mu_) = false;
  // The last time at which the client gave a slot back, or got a slot while it held none.
  absl::Duration moved_at_ ABSL_GUARDED_BY(mu_) = absl::ZeroDuration();
  // The memory that is lent, by the slot's number.
  std::map<uint64_t, Lent> lent_ ABSL_GUARDED_BY(mu_);
  // The memory that the client has mapped, by the slot's number. The pool may have freed some of
  // this memory since.
  std::map<uint64_t, std::weak_ptr<const SealedMemory>> offered_ ABSL_GUARDED_BY(mu_);
};

// How a stream's slices are shared: through `session`, or not at all if `session` is null.
struct StreamSlots {
  std::shared_ptr<SlotSession> session;
  // Why slices are not shared, if the client asked for sharing.
  v1::NotShared not_shared = v1::NO_REASON;
};

}  // namespace systole

#endif  // SYSTOLE_SERVER_SLOTS_SLOT_SESSION_H_
