// Shows our code what gRPC reads from a connection, before gRPC gets it. gRPC parses all bytes that
// it can read, and makes a call of each stream. But our code sees a call only when its request is
// complete, and gRPC has no hook that shows the bytes. So read_observer.cc has functions that
// replace three others: recvmsg(2), with which gRPC reads, and SSL_new(3) and SSL_read(3), with
// which gRPC decrypts. For sockets that are not observed, ours behave as the originals.
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

// gRPC's threads call the methods, for one connection one call at a time.
class ReadObserver {
 public:
  virtual ~ReadObserver() = default;

  // `bytes` more bytes have come. If this returns false, gRPC does not get the bytes, but the error
  // that the connection was reset.
  virtual bool OnBytes(size_t bytes) = 0;
  // `bytes` are the next bytes; with TLS, after decryption. If this returns false, gRPC gets an
  // error in their place.
  virtual bool OnPlainText(absl::Span<const uint8_t> bytes) = 0;
};

// From now on until the socket `fd` is closed, `observer` sees what is read from it. A socket that
// uses TLS also needs a HandedOver. Without one, OnPlainText() would get encrypted bytes.
void ObserveReads(int fd, std::shared_ptr<ReadObserver> observer);

// While this object lives, an SSL object that is made on the same thread is taken for the one of
// the observed socket `fd`. The socket's observer sees the bytes that this SSL object decrypts.
class HandedOver {
 public:
  explicit HandedOver(int fd);
  ~HandedOver();
  HandedOver(const HandedOver&) = delete;
  HandedOver& operator=(const HandedOver&) = delete;
};

// Internal if the dynamic linker does not find the replacing functions first. It does if this
// program exports them and gRPC and OpenSSL are shared libraries, as in Debian's packages.
absl::Status CheckReadsAreSeen();

}  // namespace systole

#endif  // SYSTOLE_SERVER_LISTENER_READ_OBSERVER_H_
