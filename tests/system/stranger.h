// Somebody without a credential who talks HTTP/2 to fill a server's memory: frames made by hand.
//
// Thread-safe: no state.
#ifndef SYSTOLE_TESTS_SYSTEM_STRANGER_H_
#define SYSTOLE_TESTS_SYSTEM_STRANGER_H_

#include <cstdint>
#include <string>
#include <vector>

namespace systole {

enum class RequestFlood {
  kEndlessMessage,  // A message of 4 GiB, within what flow control allows.
  kContinuation,    // Headers that never end.
  kTableEntries,    // The same, each an entry of the table of headers.
  kRequests,        // Streams that stay open. The server's limit of them is not acknowledged.
  kHiddenRequests,  // The same, after one with the highest even number, which no client may use.
  kEmptyRequests,   // Each ended without a message.
  kResets,          // Streams that are opened and reset.
  kTableSizes,      // Requests, each of which changes the size of the table.
  kWindowUpdates,
  kPings,
  kUnknownFrames,
};

struct RequestFloodCase {
  RequestFlood flood;
  const char* name;
  int64_t bytes;  // Enough to fill a server that counts nothing, or to take all of its time.
};
const std::vector<RequestFloodCase>& AllRequestFloods();

// Connects to the server at "127.0.0.1:PORT" as the machine 127.0.0.`host` and sends until `bytes`
// have gone or the server hangs up. Returns how many have gone. Then waits for the server to hang
// up, and fails the test if it does not.
int64_t SendFlood(const std::string& server, RequestFlood flood, int64_t bytes, int host);

}  // namespace systole

#endif  // SYSTOLE_TESTS_SYSTEM_STRANGER_H_
