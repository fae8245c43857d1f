// Compares the file descriptors that a server may come to need with the limit (RLIMIT_NOFILE). A
// server that runs out of descriptors turns new clients away until some descriptors are free again.
//
// Thread-safe: pure functions.
#ifndef SYSTOLE_SERVER_OPEN_FILES_H_
#define SYSTOLE_SERVER_OPEN_FILES_H_

#include <cstdint>

#include "absl/status/status.h"

namespace systole {

struct OpenFilesNeed {
  int64_t shards = 0;       // Each stays open.
  int64_t connections = 0;  // At once; each costs two descriptors (server/listener).
  // Whether memory is shared. Sharing needs descriptors for MaxSlotsFor(limit) slots, for a second
  // socket of each connection, and for kMaxGuests clients that have not asked for a stream yet.
  bool shares = false;
};

// How many connections `limit` has room for beside everything else in `need`; `need.connections` is
// ignored. The result is at least 8, because a server must accept some connections, and at most
// 4,096.
int64_t MaxConnectionsFor(const OpenFilesNeed& need, uint64_t limit);

// ResourceExhausted if `need` and the files that every server opens are more than `limit`. The
// message names the sum and the remedy.
absl::Status CheckOpenFiles(const OpenFilesNeed& need, uint64_t limit);

}  // namespace systole

#endif  // SYSTOLE_SERVER_OPEN_FILES_H_
