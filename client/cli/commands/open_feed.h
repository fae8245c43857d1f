// Opens the feed of a command. Until a server answers, the terminal shows which server the feed
// waits for.
//
// Thread-safe: no state.
#ifndef SYSTOLE_CLIENT_CLI_COMMANDS_OPEN_FEED_H_
#define SYSTOLE_CLIENT_CLI_COMMANDS_OPEN_FEED_H_

#include <memory>
#include <optional>

#include "absl/status/statusor.h"
#include "client/cli/console/command_line.h"
#include "client/feed/feed_client.h"
#include "core/order/resume_token.h"
#include "systole/v1/feed.pb.h"

namespace systole {

// FeedClient::Create(), or FeedClient::Resume() if there is a token. REQUIRES: options.watch is not
// null.
absl::StatusOr<std::unique_ptr<FeedClient>> OpenFeed(
    const v1::FeedSpec& spec, const FeedClientOptions& options, const Console& console,
    const std::optional<ResumeToken>& token = std::nullopt);

}  // namespace systole

#endif  // SYSTOLE_CLIENT_CLI_COMMANDS_OPEN_FEED_H_
