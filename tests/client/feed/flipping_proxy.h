// A way between client and server on which one bit of one gRPC message turns over, as with a bad
// network card whose checksums are right all the same. Understands just enough HTTP/2 to find the
// messages; everything else passes as it is.
//
//   client --TCP--> FlippingProxy --TCP--> server
//
// Thread-safe.
#ifndef SYSTOLE_TESTS_CLIENT_FEED_FLIPPING_PROXY_H_
#define SYSTOLE_TESTS_CLIENT_FEED_FLIPPING_PROXY_H_

#include <cstdint>
#include <string>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "core/concurrency/mutex.h"
#include "core/descriptor/owned_fd.h"

namespace systole {

enum class Direction { kToServer, kToClient };

class FlippingProxy {
 public:
  // Listens on a free port of 127.0.0.1 for connections to `server_port` there.
  explicit FlippingProxy(int server_port);
  ~FlippingProxy();

  // What a client dials.
  std::string address() const;

  // Bit `bit` of the `message`th message that goes in `direction` from now on (from 0, over all
  // calls) turns over, once.
  void Arm(Direction direction, int64_t message, int64_t bit);
  // Whether that has happened: the message was sent and has that many bits.
  bool flipped() const;

 private:
  // What was read of one direction of a connection.
  struct Parser;

  void Accept();
  void Pump(int from, int to, Direction direction);
  // Finds the messages in `bytes`, which come next, and turns the bit over.
  void Pass(Parser& parser, std::vector<uint8_t>& bytes) ABSL_LOCKS_EXCLUDED(mu_);
  void PassData(Parser& parser, uint8_t& byte) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  const int server_port_;
  int port_ = 0;
  const OwnedFd listener_;

  mutable Mutex mu_;
  bool stopping_ ABSL_GUARDED_BY(mu_) = false;
  std::vector<OwnedFd> sockets_ ABSL_GUARDED_BY(mu_);
  std::vector<std::thread> pumps_ ABSL_GUARDED_BY(mu_);
  Direction direction_ ABSL_GUARDED_BY(mu_) = Direction::kToServer;
  int64_t message_ ABSL_GUARDED_BY(mu_) = -1;
  int64_t bit_ ABSL_GUARDED_BY(mu_) = 0;
  int64_t seen_messages_ ABSL_GUARDED_BY(mu_) = 0;  // In direction_, since Arm().
  bool flipped_ ABSL_GUARDED_BY(mu_) = false;

  std::thread acceptor_;
};

}  // namespace systole

#endif  // SYSTOLE_TESTS_CLIENT_FEED_FLIPPING_PROXY_H_
