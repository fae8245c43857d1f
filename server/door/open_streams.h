// How many HTTP/2 streams each connection has opened, as gRPC counts them for channelz: with TLS as
// without, and before any call comes of them.
//
// Single-thread.
#ifndef SYSTOLE_SERVER_DOOR_OPEN_STREAMS_H_
#define SYSTOLE_SERVER_DOOR_OPEN_STREAMS_H_

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/time/time.h"

namespace systole {

struct StreamCounts {
  int64_t opened = 0;  // Since the connection came.
  int64_t open = 0;    // Now.
};

class OpenStreams {
 public:
  // Knows the servers of this process that are there now.
  OpenStreams();

  // To be called before gRPC gets the connection of `peer`, as OpenCalls names it.
  void Expect(const std::string& peer) { sockets_[peer] = 0; }
  void Forget(const std::string& peer) { sockets_.erase(peer); }

  // None if `peer` is not expected, or gRPC does not know it yet: during a TLS handshake.
  StreamCounts Of(const std::string& peer, absl::Duration now);

 private:
  // Those that gRPC has numbered `from` or higher.
  void FindSockets(intptr_t from);

  std::vector<intptr_t> servers_;
  std::map<std::string, intptr_t> sockets_;  // 0: not found yet.
  // gRPC numbers sockets as they come and lists each a moment later. So new ones are looked for
  // often, and what that has missed now and then.
  intptr_t last_seen_ = 0;
  absl::Duration next_look_for_new_;
  absl::Duration next_look_for_all_;
};

}  // namespace systole

#endif  // SYSTOLE_SERVER_DOOR_OPEN_STREAMS_H_
