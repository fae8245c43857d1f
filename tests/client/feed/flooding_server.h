// Two servers that send a client far more than the client has requested. FloodingServer sends raw
// bytes, which gRPC's own server would refuse to send. GiantServer sends giant messages.
#ifndef SYSTOLE_TESTS_CLIENT_FEED_FLOODING_SERVER_H_
#define SYSTOLE_TESTS_CLIENT_FEED_FLOODING_SERVER_H_

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "core/concurrency/mutex.h"
#include "core/descriptor/owned_fd.h"
#include "grpcpp/generic/async_generic_service.h"
#include "grpcpp/security/server_credentials.h"
#include "grpcpp/server.h"
#include "grpcpp/support/byte_buffer.h"

namespace systole {

// The bytes with which a FloodingServer answers the first call of a connection. In HTTP/2 this call
// is stream 1.
struct AnswerFlood {
  std::string name;
  std::string begin;
  std::string again;  // Sent again and again.
};

// Floods of frames of every kind. HTTP/2's flow control stops none of these floods.
std::vector<AnswerFlood> AllAnswerFloods();

// Answers the first call of each connection with a flood of at most `flood_bytes`. The server runs
// in the test's process, on a free port of 127.0.0.1. It sends 100 MB/s at most. On a busy machine
// a client counts the bytes late, and at a higher rate too many bytes could be sent before the
// client cuts the flood off.
//
// Thread-safe.
class FloodingServer {
 public:
  // Only the first `floods` connections get a flood. Later connections are accepted, but get
  // nothing.
  FloodingServer(const AnswerFlood& flood, int64_t flood_bytes, int floods);
  ~FloodingServer();

  // The address that a client connects to.
  std::string address() const;
  // The number of floods that have ended, and the bytes that were sent in the longest of them.
  int ended() const { return ended_; }
  int64_t most_bytes() const { return most_bytes_; }

 private:
  void Accept();
  // Sends the flood until the client hangs up. Returns the number of bytes sent.
  int64_t Answer(int fd) const;

  const AnswerFlood flood_;
  const int64_t flood_bytes_;
  const int floods_;
  int port_ = 0;
  const OwnedFd listener_;
  std::atomic<int> ended_ = 0;
  std::atomic<int64_t> most_bytes_ = 0;
  Mutex mu_;
  std::vector<OwnedFd> sockets_ ABSL_GUARDED_BY(mu_);
  std::thread acceptor_;
};

// Answers every call with one message of `message_bytes` zeros, sent slowly (paced_sockets.h).
//
// Thread-safe.
class GiantServer {
 public:
  struct Options {
    std::shared_ptr<grpc::ServerCredentials> credentials = grpc::InsecureServerCredentials();
    bool compressed = false;  // With gzip.
  };
  GiantServer(int64_t message_bytes, const Options& options);
  ~GiantServer();

  // The address that a client connects to.
  const std::string& address() const { return address_; }

 private:
  class Service;

  std::unique_ptr<Service> service_;
  std::string address_;
  std::unique_ptr<grpc::Server> server_;
};

}  // namespace systole

#endif  // SYSTOLE_TESTS_CLIENT_FEED_FLOODING_SERVER_H_
