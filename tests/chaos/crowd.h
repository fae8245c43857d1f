// Peers that take a server's time and give nothing: connections that say nothing, and calls whose
// answers are read slowly or never.
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

// As long as it lives, all from the one machine 127.0.0.2.
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

// As long as it lives: calls of StreamSteps, each of a feed and over a connection of its own.
class ReaderCrowd {
 public:
  // `slow` of the calls read a message a second each, `silent` none at all. Returns when the server
  // has begun with all of them. Their specs are `spec` with other seeds, so that no two share what
  // is made for them.
  ReaderCrowd(const std::string& address, const v1::FeedSpec& spec, int slow, int silent);
  ~ReaderCrowd();
  ReaderCrowd(const ReaderCrowd&) = delete;
  ReaderCrowd& operator=(const ReaderCrowd&) = delete;

 private:
  struct Call {
    std::unique_ptr<v1::Systole::Stub> stub;
    grpc::ClientContext context;
    std::unique_ptr<grpc::ClientReader<v1::Chunk>> reader;
  };

  void ReadSlowly(int slow);

  std::vector<std::unique_ptr<Call>> calls_;
  std::atomic<bool> stopping_ = false;
  std::thread reader_;  // Last: it uses what is above.
};

}  // namespace systole

#endif  // SYSTOLE_TESTS_CHAOS_CROWD_H_
