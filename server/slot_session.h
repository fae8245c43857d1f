// One client's connection over which it shares memory with this server: slots are lent to it and
// come back by its messages, all at once when it goes.
//
//   memory of the pool --Lend()--> the client's --SlotReturn--> of the pool again
//                                       \_____ the connection ends _____/
//
// Thread-safe.
#ifndef SYSTOLE_SERVER_SLOT_SESSION_H_
#define SYSTOLE_SERVER_SLOT_SESSION_H_

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "core/concurrency/mutex.h"
#include "core/memory/sealed_memory.h"
#include "proto/slots/slot_socket.h"
#include "systole/v1/slots.pb.h"

namespace systole {

// What all sessions of a server have in common.
struct SlotAccount {
  // Bound on what clients hold at a time, in bytes. A client that gives nothing back and stays
  // connected holds it for good; the rest of the memory budget is out of its reach.
  int64_t max_lent_bytes = 0;
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

  // Leaves `memory`, whose id() is the slot's number, to the client; `owner` is kept until the
  // client has given it back or is gone, and dropped without a lock. NO_REASON if it is lent;
  // otherwise the client cannot have it, so its bytes have to be sent. REQUIRES: it is not lent
  // already.
  v1::NotShared Lend(const std::shared_ptr<const SealedMemory>& memory,
                     std::shared_ptr<const void> owner) ABSL_LOCKS_EXCLUDED(mu_);

  // Takes one message of the client, if there is one. False: the session is over, because the
  // client is gone or sent what it must not (a slot that it does not hold, above all).
  bool TakeMessage() ABSL_LOCKS_EXCLUDED(mu_);

  int fd() const { return socket_.fd(); }

 private:
  struct Lent {
    std::shared_ptr<const void> owner;
    int64_t bytes = 0;
  };
  // Tells the client what it needs to know before it hears that the slice is there: the memory's
  // descriptor if it has not got it, and what it may unmap. NO_REASON if it has the memory.
  v1::NotShared Offer(const std::shared_ptr<const SealedMemory>& memory)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void Close() ABSL_LOCKS_EXCLUDED(mu_);

  const SlotSocket socket_;
  const std::shared_ptr<SlotAccount> account_;
  Mutex mu_;
  bool closed_ ABSL_GUARDED_BY(mu_) = false;
  // By the slot's number.
  std::map<uint64_t, Lent> lent_ ABSL_GUARDED_BY(mu_);
  // What the client has mapped. The pool may have freed some of it since.
  std::map<uint64_t, std::weak_ptr<const SealedMemory>> offered_ ABSL_GUARDED_BY(mu_);
};

// How a stream's slices are shared: through `session`, or not, if that is null.
struct StreamSlots {
  std::shared_ptr<SlotSession> session;
  // Why not, if the client asked for it.
  v1::NotShared not_shared = v1::NO_REASON;
};

}  // namespace systole

#endif  // SYSTOLE_SERVER_SLOT_SESSION_H_
