// A way between client and server on which everything happens that happens to connections: it is
// slow, late, cut, half open, and its bytes are damaged. What happens is drawn from a seed.
//
//   client --TCP--> FaultProxy --TCP--> server
//
// Its address stays, so a server that is started anew on another port keeps its name.
//
// Thread-safe.
#ifndef SYSTOLE_TESTS_CHAOS_FAULT_PROXY_H_
#define SYSTOLE_TESTS_CHAOS_FAULT_PROXY_H_

#include <cstdint>
#include <memory>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/time/time.h"
#include "core/concurrency/mutex.h"
#include "core/descriptor/owned_fd.h"

namespace systole {

// What happens to connections from now on, also to those that are open; in each direction by
// itself.
struct Faults {
  // Each piece (64 KiB at most) waits so long before it goes on.
  absl::Duration delay = absl::ZeroDuration();
  // Bytes that pass in a second; 0: any number.
  int64_t bytes_per_second = 0;
  // On average one connection is cut in so many bytes from the server, at any byte; 0: none.
  int64_t bytes_per_cut = 0;
  // On average one bit turns over in so many bytes from the server; 0: none.
  int64_t bytes_per_flip = 0;
  // Nothing passes, and no connection ends: the other side is away, or a router forgot.
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

  // What a client dials.
  std::string address() const;

  // Connections that are made from now on lead to "127.0.0.1:PORT". Until the first call they are
  // closed.
  void LeadTo(const std::string& address) ABSL_LOCKS_EXCLUDED(mu_);
  void Set(const Faults& faults) ABSL_LOCKS_EXCLUDED(mu_);
  // Cuts every connection there is.
  void CutAll() ABSL_LOCKS_EXCLUDED(mu_);

  int64_t connections() const ABSL_LOCKS_EXCLUDED(mu_);
  int64_t cuts() const ABSL_LOCKS_EXCLUDED(mu_);
  int64_t flips() const ABSL_LOCKS_EXCLUDED(mu_);

 private:
  struct Link {
    OwnedFd client;
    OwnedFd server;
    int pumps = 2;  // Threads that use the sockets.
  };
  // What is to be done with a piece of bytes.
  struct Fate {
    Faults faults;
    int64_t pass = 0;       // Bytes that go on.
    bool cut = false;       // After them.
    int64_t flip_bit = -1;  // Of those bytes.
  };

  void Accept() ABSL_LOCKS_EXCLUDED(mu_);
  void Pump(Link* link, bool from_server) ABSL_LOCKS_EXCLUDED(mu_);
  Fate Decide(int64_t bytes, bool from_server) ABSL_LOCKS_EXCLUDED(mu_);
  // False: the proxy ends.
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
  int64_t connections_ ABSL_GUARDED_BY(mu_) = 0;
  int64_t cuts_ ABSL_GUARDED_BY(mu_) = 0;
  int64_t flips_ ABSL_GUARDED_BY(mu_) = 0;
  std::thread acceptor_;  // Last: it uses what is above.
};

}  // namespace systole

#endif  // SYSTOLE_TESTS_CHAOS_FAULT_PROXY_H_
