// A server of a feed, and what the client knows about it.
//
// Thread-compatible.
#ifndef SYSTOLE_CLIENT_SERVERS_KNOWN_SERVER_H_
#define SYSTOLE_CLIENT_SERVERS_KNOWN_SERVER_H_

#include <map>
#include <memory>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "client/servers/server_link.h"
#include "systole/v1/service.pb.h"

namespace systole {

struct KnownServer {
  std::string address;
  // Null while the server is not used. A server that is not used costs only the memory of its
  // address.
  std::unique_ptr<ServerLink> link;
  // The identity in the server's answer, if the answer fits the feed. The identity is forgotten
  // when a stream breaks, because another process may listen at the address afterwards.
  std::optional<v1::FeedIdentity> identity;
  absl::Status last_error;
  std::string told;   // The last error logged since the server's last answer.
  bool left = false;  // The server is not in the list any more.

  // A question under way, and its status once its callback has run.
  struct Question {
    std::unique_ptr<ResolveCall> call;
    std::optional<absl::Status> ended;
    bool cancelled = false;
  };
  Question question;

  // A stream or a question has ended with `error`.
  void Failed(const absl::Status& error);
  // `status` with the server's address added to its message.
  absl::Status Named(const absl::Status& status) const;
};

// A sentence with advice, for the case that no server answers. `error` is the error of one of the
// servers, and `tls` says whether that server was asked over TLS.
std::string WhatToLookAt(const absl::Status& error, bool tls);

// An Unavailable error. Its message is `what`, then the servers that were asked, each with its last
// error. If there are many, the message names some of them. `tls`: whether servers are asked over
// TLS.
absl::Status Unreachable(absl::string_view what, const std::map<int, KnownServer>& servers,
                         bool tls);

}  // namespace systole

#endif  // SYSTOLE_CLIENT_SERVERS_KNOWN_SERVER_H_
