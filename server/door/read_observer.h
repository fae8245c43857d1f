// Shows us what gRPC reads of a connection, before gRPC has seen it. gRPC parses all that it can
// read and makes a call of each stream, and tells nobody until a request is whole. Hooks in gRPC
// for this do not exist; so this file's functions stand in the place of recvmsg(2), with which gRPC
// reads, and of SSL_new(3) and SSL_read(3), which decrypt it (read_observer.cc). To every other
// caller they are what they were.
//
// Thread-safe.
#ifndef SYSTOLE_SERVER_DOOR_READ_OBSERVER_H_
#define SYSTOLE_SERVER_DOOR_READ_OBSERVER_H_

#include <cstddef>
#include <cstdint>
#include <memory>

#include "absl/status/status.h"
#include "absl/types/span.h"

namespace systole {

// Is called on gRPC's threads; for one connection never on two at a time.
class ReadObserver {
 public:
  virtual ~ReadObserver() = default;

  // So much has come. False: its reader is told that the connection was reset.
  virtual bool OnBytes(size_t bytes) = 0;
  // This is next, in plain text. False: its reader gets an error instead.
  virtual bool OnPlainText(absl::Span<const uint8_t> bytes) = 0;
};

// From now on what is read from the socket `fd` is shown to `observer`, until it is closed. What
// comes over TLS is not, but is counted; see HandedOver.
void ObserveReads(int fd, std::shared_ptr<ReadObserver> observer);

// While one lives on a thread, TLS that begins on this thread is that of the observed socket `fd`,
// and what it decrypts is shown to the socket's observer.
class HandedOver {
 public:
  explicit HandedOver(int fd);
  ~HandedOver();
  HandedOver(const HandedOver&) = delete;
  HandedOver& operator=(const HandedOver&) = delete;
};

// Internal if gRPC would not call this program's functions: if it is linked in another way than
// Debian's is.
absl::Status CheckReadsAreSeen();

}  // namespace systole

#endif  // SYSTOLE_SERVER_DOOR_READ_OBSERVER_H_
