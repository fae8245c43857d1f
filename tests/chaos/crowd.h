// Peers that take a server's time and give nothing: connections that say nothing, and calls whose
// answers are read slowly or never. For comparison, some peers read as a trainer does.
//
// Thread-compatible.
#ifndef SYSTOLE_TESTS_CHAOS_CROWD_H_
#define SYSTOLE_TESTS_CHAOS_CROWD_H_

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "core/descriptor/owned_fd.h"
#include "grpcpp/client_context.h"
#include "systole/v1/service.grpc.pb.h"

namespace systole {

// Keeps connections from the address 127.0.0.2 open until it is destroyed.
class IdleCrowd {
 public:
  // Opens `idle` connections to 127.0.0.1:`port`. Every second connection sends an HTTP/2 client's
  // first bytes. Then all connections are silent. After that the crowd opens `each_second` more
  // connections in each second, and closes them when the next ones come.
  IdleCrowd(int port, int idle, int each_second);
  ~IdleCrowd();
  IdleCrowd(const IdleCrowd&) = delete;
  IdleCrowd& operator=(const IdleCrowd&) = delete;

  // How many of the later connections were opened so far.
  int64_t visits() const { return visits_; }

 private:
  void ComeAndGo(int port, int each_second);

  std::vector<OwnedFd> idle_;
  std::atomic<int64_t> visits_ = 0;
  std::atomic<bool> stopping_ = false;
  std::thread visitors_;  // Last, because it uses the members above.
};

// How many readers of each kind there are.
struct Readers {
  int honest = 0;  // Read everything as soon as it comes.
  int slow = 0;    // Each reads one message a second.
  int silent = 0;  // Read nothing at all.
};

// Keeps calls of StreamSteps open until it is destroyed. Each call has its own feed and its own
// connection.
class ReaderCrowd {
 public:
  // Returns when the server has begun to answer all calls. Their specs differ from `spec` only by
  // the seed, so that no two calls share slices.
  ReaderCrowd(const std::string& address, const v1::FeedSpec& spec, const Readers& readers);
  ~ReaderCrowd();
  ReaderCrowd(const ReaderCrowd&) = delete;
  ReaderCrowd& operator=(const ReaderCrowd&) = delete;

 private:
  struct Call {
    std::unique_ptr<v1::Systole::Stub> stub;
    grpc::ClientContext context;
    std::unique_ptr<grpc::ClientReader<v1::Chunk>> reader;
  };

  // Reads the calls from `begin` to before `end`, one message a second from each.
  void ReadSlowly(int begin, int end);

  // First the honest readers' calls, then those of the slow ones, then those of the silent ones.
  std::vector<std::unique_ptr<Call>> calls_;
  std::atomic<bool> stopping_ = false;
  std::vector<std::thread> threads_;  // Last, because they use the members above.
};

}  // namespace systole

#endif  // SYSTOLE_TESTS_CHAOS_CROWD_H_
