// A server of ready batches in shared memory, for measuring only the transport between processes of
// one host.
//
// Thread-compatible. A failure to make or start anything ends the program.
#ifndef SYSTOLE_BENCH_READY_SLOTS_H_
#define SYSTOLE_BENCH_READY_SLOTS_H_

#include <memory>
#include <string>

#include "bench/ready_feed.h"

namespace systole::bench {

// Serves copies of `ready` in shared memory at `address`, a "unix:PATH". Uses the sessions
// (SlotSession) and the window of the real server.
// `ready` must outlive this object. A client that does not ask for shared memory ends the program.
class RunningSlotServer {
 public:
  RunningSlotServer(const ReadySteps& ready, const std::string& address);
  ~RunningSlotServer();

  const std::string& address() const { return server_.address; }

 private:
  class Service;

  const std::unique_ptr<Service> service_;
  const RunningServer server_;
};

}  // namespace systole::bench

#endif  // SYSTOLE_BENCH_READY_SLOTS_H_
