// How many file descriptors a server may come to need, against how many it may open
// (RLIMIT_NOFILE). A server that runs out of them turns new clients away until it has some again.
//
// Thread-safe: pure functions.
#ifndef SYSTOLE_SERVER_OPEN_FILES_H_
#define SYSTOLE_SERVER_OPEN_FILES_H_

#include <cstdint>

#include "absl/status/status.h"

namespace systole {

struct OpenFilesNeed {
  int64_t shards = 0;       // Each stays open.
  int64_t connections = 0;  // At once; each costs two descriptors (server/door).
  // Whether memory is shared. That adds MaxSlotsFor(limit) slots, a second socket for each
  // connection, and clients that wait for their stream.
  bool shares = false;
};

// As many connections as `limit` has room for beside everything else; `need.connections` does not
// count. 8 at least, since a server without any is none, and 4,096 at most.
int64_t MaxConnectionsFor(const OpenFilesNeed& need, uint64_t limit);

// ResourceExhausted, with the sum and the remedy, if `need` and what a server opens anyway are more
// than `limit`.
absl::Status CheckOpenFiles(const OpenFilesNeed& need, uint64_t limit);

}  // namespace systole

#endif  // SYSTOLE_SERVER_OPEN_FILES_H_
