// A client without a credential that floods a server with HTTP/2 frames made by hand, to fill its
// memory.
//
// Thread-safe: no state.
#ifndef SYSTOLE_TESTS_SYSTEM_STRANGER_H_
#define SYSTOLE_TESTS_SYSTEM_STRANGER_H_

#include <cstdint>
#include <string>
#include <vector>

namespace systole {

enum class RequestFlood {
  kEndlessMessage,  // A message of 4 GiB, sent as far as flow control allows.
  kContinuation,    // Headers that never end.
  kTableEntries,    // Headers that never end, each a new entry of the header table.
  kRequests,        // Streams that stay open, more than the server's limit of streams.
  kHiddenRequests,  // kRequests after a stream of the highest even number, which is not allowed.
  kEmptyRequests,   // Streams that end without a message.
  kResets,          // Streams that are opened and reset.
  kTableSizes,      // Requests that each change the size of the header table.
  kWindowUpdates,
  kPings,
  kUnknownFrames,
};

struct RequestFloodCase {
  RequestFlood flood;
  const char* name;
  // How many bytes to send. A server that does not count what clients send would run out of memory,
  // or would spend all of its time on these bytes.
  int64_t bytes;
};
const std::vector<RequestFloodCase>& AllRequestFloods();

// Connects to the server at "127.0.0.1:PORT" from the address 127.0.0.`host`. Sends until `bytes`
// were sent or the server hangs up. Then waits for the server to hang up, and fails the
// test if the server does not. Returns how many bytes were sent.
int64_t SendFlood(const std::string& server, RequestFlood flood, int64_t bytes, int host);

}  // namespace systole

#endif  // SYSTOLE_TESTS_SYSTEM_STRANGER_H_
