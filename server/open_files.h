// How many file descriptors a server may come to need, against how many it may open
// (RLIMIT_NOFILE). A server that runs out of them hears no new client ever again: gRPC's listener
// does not try again after an accept() that failed for that reason.
//
// Thread-safe: pure functions.
#ifndef SYSTOLE_SERVER_OPEN_FILES_H_
#define SYSTOLE_SERVER_OPEN_FILES_H_

#include <cstdint>

#include "absl/status/status.h"

namespace systole {

struct OpenFilesNeed {
  int64_t shards = 0;   // Each stays open.
  int64_t streams = 0;  // At once; each may have a connection of its own.
  // Whether memory is shared. That adds MaxSlotsFor(limit) slots, a second connection for each
  // stream, and clients that wait for their stream.
  bool shares = false;
};

// ResourceExhausted, with the sum and the remedy, if `need` and what a server opens anyway are more
// than `limit`. Connections without a stream are not counted: nothing bounds them.
absl::Status CheckOpenFiles(const OpenFilesNeed& need, uint64_t limit);

}  // namespace systole

#endif  // SYSTOLE_SERVER_OPEN_FILES_H_
