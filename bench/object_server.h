// Serves the files of a folder to benchmarks, by plain HTTP/1.1, as if over a link with a latency
// and a rate. The server is a process of its own, so the program that measures does not count the
// server's CPU time.
//
// It supports GET, HEAD, one range of bytes, strong ETags and If-Match, on any number of kept
// connections. Every answer begins after the latency. While an answer waits, other answers are
// sent. All bodies share the rate.
//
// Single-thread. If the process cannot be made, the program ends.
#ifndef SYSTOLE_BENCH_OBJECT_SERVER_H_
#define SYSTOLE_BENCH_OBJECT_SERVER_H_

#include <sys/types.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <string>

#include "absl/strings/string_view.h"

namespace systole::bench {

struct ObjectServerLink {
  std::chrono::nanoseconds latency{0};
  // The rate of all bodies together. 0: as fast as the machine is.
  int64_t bytes_per_second = 0;
};

class ObjectServer {
 public:
  // Serves the files under `folder` on a free port of 127.0.0.1, and sets the environment so that
  // no proxy is used for this address. REQUIRES: no other thread runs, because this forks.
  ObjectServer(std::string folder, const ObjectServerLink& link);
  // Ends the process.
  ~ObjectServer();
  ObjectServer(const ObjectServer&) = delete;
  ObjectServer& operator=(const ObjectServer&) = delete;

  // The address of a file. REQUIRES: `path` lies in the folder, and has no character that must be
  // escaped in addresses.
  std::string Url(absl::string_view path) const;

  // Since the start: the bytes of bodies that were handed to the sockets, and the requests.
  int64_t bytes_sent() const { return shared_->bytes_sent; }
  int64_t requests() const { return shared_->requests; }

 private:
  // Memory that both processes share.
  struct Shared {
    std::atomic<int64_t> bytes_sent = 0;
    std::atomic<int64_t> requests = 0;
  };
  class Loop;

  const std::string folder_;
  Shared* const shared_;
  int port_ = 0;
  pid_t process_ = -1;
};

}  // namespace systole::bench

#endif  // SYSTOLE_BENCH_OBJECT_SERVER_H_
