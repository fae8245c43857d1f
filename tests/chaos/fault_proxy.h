// A proxy between client and server that behaves like a bad network. It delays bytes, passes them
// on slowly, or damages them. It cuts connections, or leaves them half open. The faults are drawn
// from a seed.
//
//   client --TCP--> FaultProxy --TCP--> server
//
// The proxy's address does not change, so a server that is restarted on another port stays
// reachable under the same address.
//
// Thread-safe.
#ifndef SYSTOLE_TESTS_CHAOS_FAULT_PROXY_H_
#define SYSTOLE_TESTS_CHAOS_FAULT_PROXY_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/time/time.h"
#include "core/concurrency/mutex.h"
#include "core/descriptor/owned_fd.h"

namespace systole {

// Faults of all connections, open ones and later ones. `delay` and `bytes_per_second` apply to each
// direction separately.
struct Faults {
  // Each piece of bytes (64 KiB at most) waits this long before the proxy passes it on.
  absl::Duration delay = absl::ZeroDuration();
  // How many bytes pass in a second; 0: no limit.
  int64_t bytes_per_second = 0;
  // The mean number of bytes from the server between two cuts; 0: no cuts. A cut may come at any
  // byte, and ends the connection that has this byte.
  int64_t bytes_per_cut = 0;
  // The mean number of bytes from the server between two flipped bits; 0: no bit is flipped.
  int64_t bytes_per_flip = 0;
  // Nothing passes, and no connection ends, as if the other side were away or a router had
  // forgotten the connection.
  bool swallows = false;
  // New connections are closed at once.
  bool refuses = false;
};

class FaultProxy {
 public:
  // Listens on a free port of 127.0.0.1.
  explicit FaultProxy(uint64_t seed);
  ~FaultProxy();
  FaultProxy(const FaultProxy&) = delete;
  FaultProxy& operator=(const FaultProxy&) = delete;

  // The address that a client connects to.
  std::string address() const;

  // Connections that are made from now on lead to the server at `address` ("127.0.0.1:PORT").
  // Before the first LeadTo(), the proxy closes each new connection.
  void LeadTo(const std::string& address) ABSL_LOCKS_EXCLUDED(mu_);
  void Set(const Faults& faults) ABSL_LOCKS_EXCLUDED(mu_);
  // Lets `bytes` more bytes from the server pass, over all connections together. Later bytes wait
  // for the next Grant(). Before the first Grant(), all bytes pass.
  void Grant(int64_t bytes) ABSL_LOCKS_EXCLUDED(mu_);
  // Cuts every open connection.
  void CutAll() ABSL_LOCKS_EXCLUDED(mu_);

  // Bytes from the server that were passed on.
  int64_t passed() const ABSL_LOCKS_EXCLUDED(mu_);
  int64_t connections() const ABSL_LOCKS_EXCLUDED(mu_);
  int64_t cuts() const ABSL_LOCKS_EXCLUDED(mu_);
  int64_t flips() const ABSL_LOCKS_EXCLUDED(mu_);

 private:
  struct Link {
    OwnedFd client;
    OwnedFd server;
    int pumps = 2;  // Threads that use the sockets.
  };
  // What happens to a piece of bytes.
  struct Fate {
    Faults faults;
    int64_t pass = 0;       // How many bytes are passed on.
    bool cut = false;       // The connection is cut after the bytes that are passed on.
    int64_t flip_bit = -1;  // Which bit is flipped of the bytes that are passed on; -1: none.
  };

  // Waits for bytes and reads them into `piece`. Returns their number; 0 if no more will come.
  int64_t Receive(int from, bool from_server, std::vector<char>& piece) ABSL_LOCKS_EXCLUDED(mu_);
  // Waits until at least one of `bytes` bytes may pass. Returns how many may pass, and subtracts
  // this number from granted_. Returns 0 if the proxy is about to end.
  int64_t TakeGranted(int64_t bytes) ABSL_LOCKS_EXCLUDED(mu_);
  void CountPassed(int64_t bytes) ABSL_LOCKS_EXCLUDED(mu_);
  void Accept() ABSL_LOCKS_EXCLUDED(mu_);
  void Pump(Link* link, bool from_server) ABSL_LOCKS_EXCLUDED(mu_);
  Fate Decide(int64_t bytes, bool from_server) ABSL_LOCKS_EXCLUDED(mu_);
  // Returns false if the proxy is about to end.
  bool Sleep(absl::Duration duration) ABSL_LOCKS_EXCLUDED(mu_);
  void Leave(Link* link) ABSL_LOCKS_EXCLUDED(mu_);

  int port_ = 0;
  OwnedFd listener_;
  mutable Mutex mu_;
  CondVar changed_;
  bool stopping_ ABSL_GUARDED_BY(mu_) = false;
  int server_port_ ABSL_GUARDED_BY(mu_) = 0;
  Faults faults_ ABSL_GUARDED_BY(mu_);
  std::mt19937_64 random_ ABSL_GUARDED_BY(mu_);
  std::vector<std::unique_ptr<Link>> links_ ABSL_GUARDED_BY(mu_);
  std::vector<std::thread> pumps_ ABSL_GUARDED_BY(mu_);
  std::optional<int64_t> granted_ ABSL_GUARDED_BY(mu_);  // Nullopt: all bytes may pass.
  int64_t passed_ ABSL_GUARDED_BY(mu_) = 0;
  int64_t connections_ ABSL_GUARDED_BY(mu_) = 0;
  int64_t cuts_ ABSL_GUARDED_BY(mu_) = 0;
  int64_t flips_ ABSL_GUARDED_BY(mu_) = 0;
  std::thread acceptor_;  // Last, because it uses the members above.
};

}  // namespace systole

#endif  // SYSTOLE_TESTS_CHAOS_FAULT_PROXY_H_
