// Shows us what gRPC reads from a connection, before gRPC sees it. gRPC parses all that it can
// read, and makes a call of each stream. It does not show a call to our code until the request is
// whole. gRPC has no hook that shows the bytes either. So read_observer.cc has functions that
// replace recvmsg(2), with which gRPC reads, and SSL_new(3) and SSL_read(3), with which gRPC
// decrypts. For every other caller they behave as the originals.
//
// Thread-safe.
#ifndef SYSTOLE_SERVER_LISTENER_READ_OBSERVER_H_
#define SYSTOLE_SERVER_LISTENER_READ_OBSERVER_H_

#include <cstddef>
#include <cstdint>
#include <memory>

#include "absl/status/status.h"
#include "absl/types/span.h"

namespace systole {

// gRPC's threads call it. For one connection they call it one at a time.
class ReadObserver {
 public:
  virtual ~ReadObserver() = default;

  // `bytes` more bytes have come. If this returns false, gRPC is told that the connection was
  // reset.
  virtual bool OnBytes(size_t bytes) = 0;
  // The next bytes, in plain text. If this returns false, gRPC gets an error in their place.
  virtual bool OnPlainText(absl::Span<const uint8_t> bytes) = 0;
};

// From now on, `observer` sees what is read from the socket `fd`, until the socket is closed. A
// socket that uses TLS also needs a HandedOver: without it, OnPlainText() would get encrypted
// bytes.
void ObserveReads(int fd, std::shared_ptr<ReadObserver> observer);

// If a TLS connection begins on a thread while a HandedOver lives there, the connection belongs to
// the observed socket `fd`. Its plain text is shown to the socket's observer.
class HandedOver {
 public:
  explicit HandedOver(int fd);
  ~HandedOver();
  HandedOver(const HandedOver&) = delete;
  HandedOver& operator=(const HandedOver&) = delete;
};

// Internal if gRPC does not call this program's functions, because gRPC is linked in another way
// than Debian's package is.
absl::Status CheckReadsAreSeen();

}  // namespace systole

#endif  // SYSTOLE_SERVER_LISTENER_READ_OBSERVER_H_
