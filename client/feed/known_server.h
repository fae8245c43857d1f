// A server of a feed and what its client knows of it.
//
// Thread-compatible.
#ifndef SYSTOLE_CLIENT_FEED_KNOWN_SERVER_H_
#define SYSTOLE_CLIENT_FEED_KNOWN_SERVER_H_

#include <memory>
#include <optional>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "client/feed/server_link.h"
#include "systole/v1/service.pb.h"

namespace systole {

struct KnownServer {
  std::unique_ptr<ServerLink> link;
  // The identity that it answered, if that fits the feed. Forgotten when a stream breaks, because
  // another process may listen there afterwards.
  std::optional<v1::FeedIdentity> identity;
  // The same for the compact form. The client asks for it when it first needs it.
  std::optional<v1::FeedIdentity> compact_identity;
  std::optional<absl::Duration> failed_at;
  absl::Status last_error;

  // A stream or a question has ended with `error`.
  void Failed(absl::Duration now, const absl::Status& error);
  // Whether it failed a short time ago, so that others are preferred.
  bool IsAvoided(absl::Duration now) const;
  // `status` with the server's address added to its message.
  absl::Status Named(const absl::Status& status) const;
};

// Unavailable. The message is `what`, then every server with its last error.
absl::Status Unreachable(absl::string_view what, absl::Span<const KnownServer> servers);

}  // namespace systole

#endif  // SYSTOLE_CLIENT_FEED_KNOWN_SERVER_H_
