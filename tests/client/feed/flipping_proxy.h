// A proxy between client and server that flips one bit of one gRPC message. A bad network card can
// do this, too, and still send right checksums. The proxy knows just enough HTTP/2 to find the
// messages, and passes on everything else unchanged.
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
  // Listens on a free port of 127.0.0.1 and connects to `server_port` there.
  explicit FlippingProxy(int server_port);
  ~FlippingProxy();

  // The address that a client connects to.
  std::string address() const;

  // Flips one bit, once: bit `bit` of the `message`th message that goes in `direction` from now on.
  // Messages are counted from 0, over all calls.
  void Arm(Direction direction, int64_t message, int64_t bit);
  // Whether the bit was flipped: the message came, and it has a bit of this number.
  bool flipped() const;

 private:
  // How far the proxy has read one direction of a connection.
  struct Parser;

  void Accept();
  void Pump(int from, int to, Direction direction);
  // Finds the messages in `bytes`, the next bytes of the connection, and flips the bit.
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
