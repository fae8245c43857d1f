// Peers that only cost a server time and memory: connections that send nothing, and calls whose
// answers are read slowly or never. For comparison, there are also peers that read as a trainer
// does.
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

// Keeps connections from the address 127.0.0.2 open until the object is destroyed.
class IdleCrowd {
 public:
  // Opens `idle` connections to 127.0.0.1:`port`. Every second connection sends an HTTP/2 client's
  // first bytes. After that, these connections are silent. From then on, the crowd also opens
  // `each_second` more connections in each second, and closes each of them a moment later.
  IdleCrowd(int port, int idle, int each_second);
  ~IdleCrowd();
  IdleCrowd(const IdleCrowd&) = delete;
  IdleCrowd& operator=(const IdleCrowd&) = delete;

  // How many connections the crowd has opened after the first `idle` ones.
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

// Keeps calls of StreamSteps open until the object is destroyed. Each call has its own feed and its
// own connection.
class ReaderCrowd {
 public:
  // Returns when the server has begun to answer all calls. The calls' specs differ from `spec` only
  // in the seed. Each call has another seed, so that no two calls share slices.
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

  // Reads one message a second from each of the calls `begin` .. `end` - 1.
  void ReadSlowly(int begin, int end);

  // First the honest readers' calls, then the slow readers' calls, then the silent readers' calls.
  std::vector<std::unique_ptr<Call>> calls_;
  std::atomic<bool> stopping_ = false;
  std::vector<std::thread> threads_;  // Last, because they use the members above.
};

}  // namespace systole

#endif  // SYSTOLE_TESTS_CHAOS_CROWD_H_
