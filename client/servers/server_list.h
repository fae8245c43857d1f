// The servers of a feed, as its trainer gives them: addresses, names that are looked up, and files
// that list addresses.
//
//   HOST:PORT, unix:PATH    one server
//   dns:///NAME:PORT        one server at each address of NAME, looked up again and again
//   file:PATH               one server for each line of the file, read again and again; from # to
//                           the end of a line is a comment
//   xds:///NAME             counts as one server; gRPC resolves the name
//
// Thread-compatible.
#ifndef SYSTOLE_CLIENT_SERVERS_SERVER_LIST_H_
#define SYSTOLE_CLIENT_SERVERS_SERVER_LIST_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"

namespace systole {

// The most servers in a list, and the most addresses that a name or a file may give. A feed uses
// only a few of these servers.
inline constexpr size_t kMaxServers = 4096;
// The largest file of addresses, in bytes.
inline constexpr int64_t kMaxServerFileBytes = 256 << 10;

class ServerList {
 public:
  // InvalidArgument if `servers` is empty, has more than kMaxServers entries, or has an entry of
  // none of the forms above. Looks up no name and reads no file yet.
  static absl::StatusOr<ServerList> Create(std::vector<std::string> servers);

  // The pause between calls of Read(): a few seconds if there are names or files, else infinite.
  absl::Duration period() const { return period_; }

  // The present addresses, each once: 1 to kMaxServers of them. Looking up a name waits for the
  // name service.
  //   Unavailable         a name has no address now; the error contains the name.
  //   InvalidArgument     a file has a line that is not an address, or no address at all; the error
  //                       names the file and the line.
  //   ResourceExhausted   there are more than kMaxServers addresses, or a file is too large.
  //   other codes         a file cannot be read.
  absl::StatusOr<std::vector<std::string>> Read() const;

 private:
  explicit ServerList(std::vector<std::string> servers) : servers_(std::move(servers)) {}

  std::vector<std::string> servers_;
  absl::Duration period_ = absl::InfiniteDuration();
};

}  // namespace systole

#endif  // SYSTOLE_CLIENT_SERVERS_SERVER_LIST_H_
