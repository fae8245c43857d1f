// Peers that take a server's time and give nothing: connections that say nothing, and calls whose
// answers are read slowly or never. For comparison also peers that read as a trainer does.
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

// Connections, for as long as it lives, all from the one machine 127.0.0.2.
class IdleCrowd {
 public:
  // Opens `idle` connections to 127.0.0.1:`port`, of which every second one says hello as HTTP/2
  // does, and all then are silent. From then on opens `each_second` more, and closes each when
  // the next ones come.
  IdleCrowd(int port, int idle, int each_second);
  ~IdleCrowd();
  IdleCrowd(const IdleCrowd&) = delete;
  IdleCrowd& operator=(const IdleCrowd&) = delete;

  // How many came and went so far.
  int64_t visits() const { return visits_; }

 private:
  void ComeAndGo(int port, int each_second);

  std::vector<OwnedFd> idle_;
  std::atomic<int64_t> visits_ = 0;
  std::atomic<bool> stopping_ = false;
  std::thread visitors_;  // Last: it uses what is above.
};

// How many readers there are of each kind.
struct Readers {
  int honest = 0;  // Read all that comes, at once.
  int slow = 0;    // Read a message a second each.
  int silent = 0;  // Read nothing at all.
};

// As long as it lives: calls of StreamSteps, each of a feed and over a connection of its own.
class ReaderCrowd {
 public:
  // Returns when the server has begun with all of them. Their specs are `spec` with other seeds, so
  // that no two share what is made for them.
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

  // The calls from `begin` to before `end`, a message a second each.
  void ReadSlowly(int begin, int end);

  std::vector<std::unique_ptr<Call>> calls_;  // Honest ones, then slow ones, then silent ones.
  std::atomic<bool> stopping_ = false;
  std::vector<std::thread> threads_;  // Last: they use what is above.
};

}  // namespace systole

#endif  // SYSTOLE_TESTS_CHAOS_CROWD_H_
